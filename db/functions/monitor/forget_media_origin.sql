create or replace function autopost.forget_media_origin(p_workspace_id text, p_blob_ref text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Marks a medium as deleted, and drops what platforms gave for it: no post may refer to it from now on. The row is locked, then looked at:
-- an enqueue that refers to it is either seen here, or finds it gone. Repeatable.
-- Returns {"applied": true, "last": whether no other workspace holds this content, so that the object may go}, or {"applied": false,
-- "reason": "unknown" | "seen_again" | "referenced"}. Looks across workspaces for "last" alone.
-- Locks: an advisory lock of the content, media_origin. Reads: message_media, submissions. Writes: media_origin, media_blobs.
declare
	v_origin autopost.media_origin;
	v_last boolean;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require('blob_ref', p_blob_ref <> '');
	-- two workspaces that forget the same content: the second one is the last
	perform pg_advisory_xact_lock(hashtextextended('autopost.media_origin/' || p_blob_ref, 0));
	select o.* into v_origin from autopost.media_origin o
	where o.workspace_id = p_workspace_id and o.blob_ref = p_blob_ref
	for update of o;
	if v_origin.blob_ref is null then
		return '{"applied": false, "reason": "unknown"}';
	elsif v_origin.deleted_at is null then
		if v_origin.last_seen_at >= autopost.origin_kept_from(v_origin) then
			return '{"applied": false, "reason": "seen_again"}';
		elsif autopost.origin_in_use(p_workspace_id, p_blob_ref) then
			return '{"applied": false, "reason": "referenced"}';
		end if;
		update autopost.media_origin o set deleted_at = autopost.now_ts() where o.workspace_id = p_workspace_id and o.blob_ref = p_blob_ref;
		delete from autopost.media_blobs b where b.workspace_id = p_workspace_id and b.blob_ref = p_blob_ref;
	end if;
	perform autopost.enter_all_workspaces();
	select not exists (
		select 1 from autopost.workspaces w
		cross join lateral (
			select 1 from autopost.media_origin o
			where o.workspace_id = w.workspace_id and o.blob_ref = p_blob_ref and o.deleted_at is null limit 1) held) into v_last;
	perform autopost.enter_workspace(p_workspace_id);
	return jsonb_build_object('applied', true, 'last', v_last);
end
$$;
