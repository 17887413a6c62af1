create or replace function autopost.list_media_origins(p_workspace_id text, p_limit int) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: lists the media of a workspace, last seen first, with the number of messages that refer
--          to each.
-- Returns: [{"blob_ref", "kind", "content_type", "size_bytes", "width", "height", "created_at",
--          "last_seen_at", "messages", "forgotten"}].
-- Raises:  AP001 for a limit outside 1 to 10000.
-- Reads:   media_origin.
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.check_read('{}', '{}', p_limit);
	return (
		select coalesce(jsonb_agg(jsonb_build_object('blob_ref', x.blob_ref, 'kind', x.kind, 'content_type',
			x.content_type, 'size_bytes', x.size_bytes,
			'width', x.width, 'height', x.height, 'created_at', x.created_at, 'last_seen_at', x.last_seen_at,
				'forgotten', x.deleted_at is not null,
			'messages', x.ref_count)
			order by x.last_seen_at desc, x.blob_ref), '[]')
		from (
			select o.blob_ref, o.kind, o.content_type, o.size_bytes, o.width, o.height, o.created_at, o.last_seen_at,
				o.deleted_at, o.ref_count
			from autopost.media_origin o
			where o.workspace_id = p_workspace_id
			order by o.last_seen_at desc, o.blob_ref
			limit p_limit) x);
end
$$;
