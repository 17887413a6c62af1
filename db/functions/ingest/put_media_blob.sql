create or replace function autopost.put_media_blob(
	p_workspace_id text, p_blob_ref text, p_provider text, p_auth_ref text, p_kind text, p_file_id text,
		p_expires_at timestamptz
) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: keeps the platform's id of a content in place of its source URL. A null p_file_id forgets
--          both after the platform refused one.
-- Writes:  media_blobs.
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument(r.name, r.value <> '')
	from (values ('blob_ref', p_blob_ref), ('provider', p_provider), ('auth_ref', p_auth_ref), ('kind', p_kind)) r (
		name, value);
	insert into autopost.media_blobs (workspace_id, blob_ref, provider, auth_ref, kind, file_id, expires_at, created_at,
		updated_at)
	values (p_workspace_id, p_blob_ref, p_provider, p_auth_ref, p_kind, p_file_id, p_expires_at, autopost.now_ts(),
		autopost.now_ts())
	on conflict (workspace_id, blob_ref, provider, auth_ref, kind) do update
	set file_id = excluded.file_id, url = null, expires_at = excluded.expires_at, updated_at = excluded.updated_at;
	return '{"applied": true}';
end
$$;
