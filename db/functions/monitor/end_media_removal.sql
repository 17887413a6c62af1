create or replace function autopost.end_media_removal(p_blob_ref text, p_token text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: records that the stored object is deleted. Its content may be registered again.
-- Returns: {"applied": true}; or {"applied": false, "reason": "stale"} if the removal ended or
--          another caller took over.
-- Writes:  media_removals.
begin
	perform autopost.require_argument('blob_ref', p_blob_ref <> ''), autopost.require_argument('token', p_token <> '');
	delete from autopost.media_removals r where r.blob_ref = p_blob_ref and r.token = p_token;
	return case when found then '{"applied": true}'::jsonb else '{"applied": false, "reason": "stale"}' end;
end
$$;
