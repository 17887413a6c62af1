create or replace function autopost.list_unreferenced_origins(p_workspace_id text, p_limit int) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: lists media that may be removed: not seen for origin_retention_days (large video:
--          origin_retention_large_video_days) and without a message or waiting submission, and
--          forgotten ones that are not removed yet. Steps for each: forget_media_origin; if it
--          returns a token, delete the object and call end_media_removal; then remove_media_origin.
-- Returns: [{"blob_ref", "origin_url", "size_bytes", "last_seen_at", "forgotten"}], longest unseen
--          first.
-- Raises:  AP001 if the limit is not positive.
-- Reads:   media_origin, message_media, submissions.
declare
	v_before timestamptz;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('limit', p_limit > 0);
	v_before := autopost.now_ts() - least(autopost.setting_interval('origin_retention_days'),
		autopost.setting_interval('origin_retention_large_video_days'));
	return (
		select coalesce(jsonb_agg(jsonb_build_object('blob_ref', x.blob_ref, 'origin_url', x.origin_url, 'size_bytes',
			x.size_bytes,
			'last_seen_at', x.last_seen_at, 'forgotten', x.deleted_at is not null)
				order by x.last_seen_at, x.blob_ref), '[]')
		from (
			(select o.blob_ref, o.origin_url, o.size_bytes, o.last_seen_at, o.deleted_at from autopost.media_origin o
			where o.workspace_id = p_workspace_id and o.deleted_at is null and o.ref_count = 0 and o.last_seen_at < v_before
			and o.last_seen_at < autopost.origin_kept_from(row(o.*)::autopost.media_origin)
			and not autopost.origin_in_use(p_workspace_id, o.blob_ref)
			order by o.last_seen_at
			limit p_limit)
			union all
			(select o.blob_ref, o.origin_url, o.size_bytes, o.last_seen_at, o.deleted_at from autopost.media_origin o
			where o.workspace_id = p_workspace_id and o.deleted_at is not null
			order by o.deleted_at
			limit p_limit)
			limit p_limit) x);
end
$$;
