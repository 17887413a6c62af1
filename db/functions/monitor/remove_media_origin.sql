create or replace function autopost.remove_media_origin(p_workspace_id text, p_blob_ref text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: deletes the row of a forgotten medium after its object was deleted or left to another
--          workspace.
-- Returns: {"applied": true}; or {"applied": false, "reason": "unknown" | "not_forgotten": the
--          medium was stored again}.
-- Locks:   media_origin.
-- Writes:  media_origin.
declare
	v_origin autopost.media_origin;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('blob_ref', p_blob_ref <> '');
	select o.* into v_origin from autopost.media_origin o
	where o.workspace_id = p_workspace_id and o.blob_ref = p_blob_ref
	for update of o;
	if v_origin.blob_ref is null then
		return '{"applied": false, "reason": "unknown"}';
	elsif v_origin.deleted_at is null then
		return '{"applied": false, "reason": "not_forgotten"}';
	end if;
	delete from autopost.media_origin o where o.workspace_id = p_workspace_id and o.blob_ref = p_blob_ref;
	return '{"applied": true}';
end
$$;
