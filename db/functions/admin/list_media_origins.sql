create or replace function autopost.list_media_origins(p_workspace_id text, p_filter jsonb, p_limit int)
	returns setof jsonb
language plpgsql security definer set search_path = autopost, pg_temp set plan_cache_mode = force_custom_plan
	set enable_sort = off set enable_seqscan = off set enable_bitmapscan = off
as $$
-- Purpose: lists the media of a workspace, last seen first, with the number of messages that refer
--          to each. All keys of p_filter are optional: kind, unused (true: only media without a
--          message), blob_ref, and the last row of the page before as before_seen and before_ref.
-- Returns: {"blob_ref", "kind", "content_type", "size_bytes", "width", "height", "created_at",
--          "last_seen_at", "messages", "forgotten"}.
-- Raises:  AP001 for an unknown key or kind, a malformed instant, or a limit outside 1 to 10000.
-- Reads:   media_origin.
declare
	v_before timestamptz := autopost.instant_in(p_filter, 'before_seen');
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.check_read(p_filter, '{kind,unused,blob_ref,before_seen,before_ref}', p_limit);
	if p_filter ? 'kind'
		and coalesce(p_filter ->> 'kind' not in ('image', 'video', 'audio', 'file', 'animation'), true) then
		perform autopost.raise_argument('filter', format('unknown kind %s', p_filter -> 'kind'),
			'use image, video, audio, file or animation');
	end if;
	return query
	select jsonb_build_object('blob_ref', o.blob_ref, 'kind', o.kind, 'content_type', o.content_type,
		'size_bytes', o.size_bytes, 'width', o.width, 'height', o.height, 'created_at', o.created_at,
		'last_seen_at', o.last_seen_at, 'forgotten', o.deleted_at is not null, 'messages', o.ref_count)
	from autopost.media_origin o
	where o.workspace_id = p_workspace_id
	and (not p_filter ? 'kind' or o.kind = p_filter ->> 'kind')
	and (not p_filter ? 'blob_ref' or o.blob_ref = p_filter ->> 'blob_ref')
	and (p_filter ->> 'unused' is distinct from 'true' or o.ref_count = 0)
	and (v_before is null or o.last_seen_at <= v_before)
	and (v_before is null or o.last_seen_at < v_before or o.blob_ref < p_filter ->> 'before_ref')
	order by o.last_seen_at desc, o.blob_ref desc
	limit p_limit;
end
$$;
