create or replace function autopost.get_media_origin(p_workspace_id text, p_blob_ref text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: the workspace's row of a media reference: {"blob_ref", "origin_url", "content_type",
--          "kind", "size_bytes", "width", "height"}; null if it has none or has forgotten it. Rows
--          of other workspaces do not count.
-- Reads:   media_origin.
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('blob_ref', p_blob_ref <> '');
	return (
		select jsonb_build_object('blob_ref', o.blob_ref, 'origin_url', o.origin_url, 'content_type', o.content_type,
			'kind', o.kind,
			'size_bytes', o.size_bytes, 'width', o.width, 'height', o.height)
		from autopost.media_origin o
		where o.workspace_id = p_workspace_id and o.blob_ref = p_blob_ref and o.deleted_at is null);
end
$$;
