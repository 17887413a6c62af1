create or replace function autopost.get_media_blob(p_workspace_id text, p_blob_ref text, p_provider text,
	p_auth_ref text, p_kind text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: the platform's id of a content under a credential and kind: {"file_id", "expires_at"};
--          null if no valid one exists.
-- Reads:   media_blobs.
declare
	v_answer jsonb;
begin
	perform autopost.enter_workspace(p_workspace_id);
	select jsonb_build_object('file_id', b.file_id, 'expires_at', b.expires_at) into v_answer
		from autopost.media_blobs b
	where b.workspace_id = p_workspace_id and b.blob_ref = p_blob_ref and b.provider = p_provider
		and b.auth_ref = p_auth_ref and b.kind = p_kind
	and b.file_id is not null and coalesce(b.expires_at, 'infinity') > autopost.now_ts();
	return v_answer;
end
$$;
