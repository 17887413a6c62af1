create or replace function autopost.get_media_blob(p_workspace_id text, p_blob_ref text, p_provider text,
	p_auth_ref text, p_kind text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: the platform's id of a content under a credential and kind, else the source URL that the
--          platform may fetch: {"file_id", "url", "expires_at"}; null if neither is valid.
-- Reads:   media_blobs, platforms.
declare
	v_answer jsonb;
begin
	perform autopost.enter_workspace(p_workspace_id);
	select jsonb_build_object('file_id', b.file_id, 'url', b.url, 'expires_at', b.expires_at) into v_answer
		from autopost.media_blobs b
	where b.workspace_id = p_workspace_id and b.blob_ref = p_blob_ref and b.provider = p_provider
		and b.auth_ref = p_auth_ref and b.kind = p_kind
	and coalesce(b.expires_at, 'infinity') > autopost.now_ts()
	and (b.file_id is not null or b.url is not null and exists (
		select 1 from autopost.platforms p
		where p.platform = p_provider and autopost.upload_policy(row(p.*)::autopost.platforms,
			p_kind) = 'url_allowed'));
	return v_answer;
end
$$;
