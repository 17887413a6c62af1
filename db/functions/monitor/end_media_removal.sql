create or replace function autopost.end_media_removal(p_blob_ref text, p_token text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- The object is gone: its content may be registered again. Returns {"applied": true}, or {"applied": false, "reason": "stale"}:
-- it was ended, or another one has taken over.
-- Writes: media_removals.
begin
	perform autopost.require('blob_ref', p_blob_ref <> ''), autopost.require('token', p_token <> '');
	delete from autopost.media_removals r where r.blob_ref = p_blob_ref and r.token = p_token;
	return case when found then '{"applied": true}'::jsonb else '{"applied": false, "reason": "stale"}' end;
end
$$;
