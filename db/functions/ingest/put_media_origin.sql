create or replace function autopost.claim_content(p_workspace_id text, p_blob_ref text, p_hashed boolean) returns
	boolean
language plpgsql
as $$
-- Purpose: true if a workspace may register content. The engine may (p_hashed): rows of other
--          workspaces that it has not hashed end. Another caller may if its workspace has the content
--          or no workspace has it. On a cluster another caller may not, because the other workspaces are
--          on other nodes. The caller locked the content.
-- Reads:   workspaces.
-- Writes:  media_origin.
declare
	v_free boolean := true;
	v_now timestamptz;
begin
	if not p_hashed and exists (select 1 from autopost.media_origin o
		where o.workspace_id = p_workspace_id and o.blob_ref = p_blob_ref and o.deleted_at is null) then
		return true;
	elsif autopost.is_distributed() then
		return p_hashed;
	end if;
	perform autopost.enter_all_workspaces();
	if p_hashed then
		v_now := autopost.now_ts();
		update autopost.media_origin o set deleted_at = v_now -- citus: ok, not reached on a cluster
		from autopost.workspaces w -- citus: ok, not reached on a cluster
		where o.workspace_id = w.workspace_id and w.workspace_id <> p_workspace_id and o.blob_ref = p_blob_ref
		and not o.hashed and o.deleted_at is null;
	else
		v_free := not exists (
			select 1 from autopost.workspaces w -- citus: ok, not reached on a cluster
			join autopost.media_origin o -- citus: ok, not reached on a cluster
				on o.workspace_id = w.workspace_id and o.blob_ref = p_blob_ref
				and o.deleted_at is null);
	end if;
	perform autopost.enter_workspace(p_workspace_id);
	return v_free;
end
$$;

create or replace function autopost.store_origin(p_workspace_id text, p_origin jsonb, p_hashed boolean) returns void
language plpgsql
as $$
-- Purpose: stores the row of content that the caller locked and may register, or that it was seen again.
-- Writes:  media_origin.
declare
	v_new autopost.media_origin := jsonb_populate_record(null::autopost.media_origin, p_origin);
begin
	insert into autopost.media_origin as o (workspace_id, blob_ref, origin_url, sha256, content_type, size_bytes, kind,
		width, height, last_seen_at, created_at, hashed)
	values (p_workspace_id, v_new.blob_ref, v_new.origin_url, substr(v_new.blob_ref, 8), v_new.content_type,
		v_new.size_bytes, v_new.kind, v_new.width, v_new.height, autopost.now_ts(), autopost.now_ts(), p_hashed)
	on conflict (workspace_id, blob_ref) do update
	set origin_url = excluded.origin_url, content_type = excluded.content_type, size_bytes = excluded.size_bytes,
		last_seen_at = excluded.last_seen_at, deleted_at = null,
		hashed = excluded.hashed or o.hashed and o.deleted_at is null;
end
$$;

create or replace function autopost.put_media_origin(
	p_workspace_id text, p_blob_ref text, p_origin_url text, p_content_type text, p_size_bytes bigint, p_kind text,
		p_width int, p_height int
) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: registers content in the media store under its hash ("sha256:" and 64 hexadecimal
--          digits), or records that it was seen again. The engine has hashed the content. Any other caller
--          knows perhaps the hash only: content of another workspace is refused, and its row ends when
--          the engine stores the content for another workspace.
-- Returns: {"applied": true}, or {"applied": false, "reason"}: "too_large" for its kind (with
--          "limit"); "being_removed": the object is being deleted, so store and register it again a
--          little later; "not_yours": upload it with POST /api/v1/media.
-- Raises:  AP001 for a wrong argument.
-- Locks:   an advisory lock of the content, media_origin.
-- Reads:   workspaces, media_removals.
-- Writes:  media_origin.
declare
	v_limit bigint := autopost.setting(case when p_kind = 'image' then 'max_media_bytes_image'
		else 'max_media_bytes_video' end);
	v_engine boolean := autopost.is_engine_login();
begin
	perform autopost.enter_workspace(p_workspace_id);
	if coalesce(p_blob_ref !~ '^sha256:[0-9a-f]{64}$', true) then
		perform autopost.raise_argument('blob_ref', 'must be a media reference',
			'pass "sha256:" and the 64 hexadecimal digits of the content');
	end if;
	perform autopost.require_argument('origin_url', p_origin_url <> ''),
		autopost.require_argument('size_bytes', p_size_bytes >= 0);
	if p_size_bytes > v_limit then
		return jsonb_build_object('applied', false, 'reason', 'too_large', 'limit', v_limit);
	end if;
	perform autopost.lock_content(p_blob_ref);
	if exists (select 1 from autopost.media_removals r where r.blob_ref = p_blob_ref) then
		return '{"applied": false, "reason": "being_removed"}';
	end if;
	if not autopost.claim_content(p_workspace_id, p_blob_ref, v_engine) then
		return '{"applied": false, "reason": "not_yours"}';
	end if;
	perform autopost.store_origin(p_workspace_id, jsonb_build_object('blob_ref', p_blob_ref, 'origin_url', p_origin_url,
		'content_type', p_content_type, 'size_bytes', p_size_bytes, 'kind', p_kind, 'width', p_width, 'height',
			p_height),
		v_engine);
	return '{"applied": true}';
end
$$;
