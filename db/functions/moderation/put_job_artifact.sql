create or replace function autopost.put_job_artifact(p_workspace_id text, p_source_id text, p_origin jsonb) returns
	jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: registers an artifact of a file job in the media store: {"blob_ref", "origin_url", "content_type",
--          "size_bytes", "kind", "width", "height"}. Its limit is max_bytes of the source, not that of media. Only
--          the engine, which has hashed the content, may call it.
-- Returns: {"applied": true}, or {"applied": false, "reason"}: too_large (with "limit"), being_removed.
-- Raises:  AP001 for a wrong argument.
-- Locks:   an advisory lock of the content, media_origin.
-- Reads:   pull_sources, workspaces, media_removals.
-- Writes:  media_origin.
declare
	v_source autopost.pull_sources;
	v_ref text := p_origin ->> 'blob_ref';
	v_limit bigint;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_source := autopost.file_source(p_workspace_id, p_source_id);
	perform autopost.require_argument('origin', p_origin ->> 'origin_url' <> '' and (p_origin ->>
		'size_bytes')::bigint >= 0
		and v_ref ~ '^sha256:[0-9a-f]{64}$');
	v_limit := coalesce((v_source.config_json ->> 'max_bytes')::bigint, 17179869184);
	if (p_origin ->> 'size_bytes')::bigint > v_limit then
		return jsonb_build_object('applied', false, 'reason', 'too_large', 'limit', v_limit);
	end if;
	perform autopost.lock_content(v_ref);
	if exists (select 1 from autopost.media_removals r where r.blob_ref = v_ref) then
		return '{"applied": false, "reason": "being_removed"}';
	end if;
	perform autopost.claim_content(p_workspace_id, v_ref, true);
	perform autopost.store_origin(p_workspace_id, p_origin, true);
	return '{"applied": true}';
end
$$;
