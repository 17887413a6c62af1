create or replace function autopost.begin_media_removal(p_blob_ref text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: permits the caller to delete the stored object of content that no workspace holds. Until
--          end_media_removal the content cannot be registered. A removal expires after
--          media_removal_time. Works across workspaces.
-- Returns: {"applied": true, "token"}; or {"applied": false, "reason": "held" | "busy"}.
-- Locks:   an advisory lock of the content.
-- Reads:   media_origin.
-- Writes:  media_removals.
begin
	perform autopost.enter_all_workspaces();
	perform autopost.require_argument('blob_ref', p_blob_ref <> '');
	perform autopost.lock_content(p_blob_ref);
	return autopost.begin_removal(p_blob_ref);
end
$$;
