create or replace function autopost.list_media_removals(p_limit int) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: lists content whose removal did not end in time, oldest first, as an array of blob_ref.
--          begin_media_removal takes one over.
-- Raises:  AP001 if the limit is not positive.
-- Reads:   media_removals.
begin
	perform autopost.require_argument('limit', p_limit > 0);
	return (
		select coalesce(jsonb_agg(x.blob_ref order by x.begun_at, x.blob_ref), '[]')
		from (
			select r.blob_ref, r.begun_at from autopost.media_removals r
			where r.begun_at <= autopost.now_ts() - autopost.media_removal_time()
			order by r.begun_at, r.blob_ref
			limit p_limit) x);
end
$$;
