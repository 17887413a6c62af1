create or replace function autopost.forget_media_origin(p_workspace_id text, p_blob_ref text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: marks a medium as deleted and forgets the platforms' ids for it. No new post may refer
--          to it. The row is locked before the check: a concurrent enqueue is either visible here
--          or does not find the medium. Repeatable. For the token it checks all workspaces.
-- Returns: {"applied": true, "token": for end_media_removal if no other workspace holds the
--          content, so that the object must be deleted}; or {"applied": false, "reason": "unknown"
--          | "seen_again" | "referenced" | "busy": another removal is running}.
-- Locks:   an advisory lock of the content, media_origin.
-- Reads:   message_media, submissions.
-- Writes:  media_origin, media_blobs, media_removals.
declare
	v_origin autopost.media_origin;
	v_removal jsonb;
	v_now timestamptz;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('blob_ref', p_blob_ref <> '');
	-- of two workspaces that forget the same content, the second gets the token
	perform autopost.lock_content(p_blob_ref);
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
		v_now := autopost.now_ts();
		update autopost.media_origin o set deleted_at = v_now
			where o.workspace_id = p_workspace_id and o.blob_ref = p_blob_ref;
		delete from autopost.media_blobs b where b.workspace_id = p_workspace_id and b.blob_ref = p_blob_ref;
	end if;
	perform autopost.enter_all_workspaces();
	v_removal := autopost.begin_removal(p_blob_ref);
	perform autopost.enter_workspace(p_workspace_id);
	return case when v_removal ->> 'reason' = 'held' then '{"applied": true}' else v_removal end;
end
$$;
