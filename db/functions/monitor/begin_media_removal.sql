create or replace function autopost.begin_media_removal(p_blob_ref text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Lets the caller take away the object of content that no workspace holds: from now on nobody may register it, until end_media_removal.
-- Whoever has not ended within media_removal_seconds is taken for dead. Looks across workspaces.
-- Returns {"applied": true, "token"}, or {"applied": false, "reason": "held" | "busy"}.
-- Locks: an advisory lock of the content. Reads: media_origin. Writes: media_removals.
begin
	perform autopost.enter_all_workspaces();
	perform autopost.require('blob_ref', p_blob_ref <> '');
	perform autopost.lock_content(p_blob_ref);
	return autopost.begin_removal(p_blob_ref);
end
$$;
