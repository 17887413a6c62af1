create or replace function autopost.purge_messages(p_workspace_id text, p_after jsonb) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: deletes unused messages: without deliveries, events, receipts and submissions, and last
--          seen before message_retention_days, each dedup window and each receipt's time. Checks
--          the next 1,000 without a delivery after p_after (null: from the oldest). Each row is
--          locked and checked again: a concurrent enqueue of the same content holds it, and it
--          stays; or the enqueue waits and stores the content again. The lock is FOR UPDATE, for
--          the deletion; locked rows are skipped.
-- Returns: {"purged", "after": for the next call, null at the end}.
-- Locks:   messages (skip locked), media_origin (blob_ref).
-- Reads:   deliveries, events, ingress_receipts, submissions, channels.
-- Writes:  messages, message_media, media_origin.
declare
	v_before timestamptz;
	v_ids uuid[];
	v_times timestamptz[];
	v_named uuid[];
	v_unused uuid[];
	v_count int;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_before := least(
		autopost.kept_from('message_retention_days'), autopost.kept_from('receipt_ttl_hours'),
			autopost.kept_from('pull_receipt_ttl_hours'),
		autopost.now_ts() - autopost.longest_dedup_ttl() - interval '1 day',
		autopost.oldest_receipt(p_workspace_id) - interval '1 day',
			autopost.oldest_submission(p_workspace_id) - interval '1 day');
	select array_agg(x.message_id order by x.created_at, x.message_id),
		array_agg(x.created_at order by x.created_at, x.message_id) into v_ids, v_times
	from (
		select m.message_id, m.created_at from autopost.messages m
		where m.workspace_id = p_workspace_id and m.created_at < v_before and m.last_seen_at < v_before
		and (m.created_at, m.message_id) > (coalesce((p_after ->> 0)::timestamptz, '-infinity'),
			coalesce((p_after ->> 1)::uuid, '00000000-0000-0000-0000-000000000000'))
		and not exists (select 1 from autopost.deliveries d
			where d.workspace_id = p_workspace_id and d.message_id = m.message_id offset 0)
		order by m.created_at, m.message_id
		limit 1000
		for update of m skip locked) x;
	select array_agg(u.message_id) into v_named
	from unnest(v_ids) u (message_id)
	cross join lateral (
		select 1 from autopost.events e
		where e.workspace_id = p_workspace_id and e.message_id = u.message_id
		limit 1) e;
	v_unused := array(
		select u.message_id from unnest(v_ids) u (message_id)
		where u.message_id <> all (coalesce(v_named, '{}'))
		and not exists (select 1 from autopost.deliveries d where d.workspace_id = p_workspace_id
			and d.message_id = u.message_id offset 0));
	perform autopost.count_references(p_workspace_id, v_unused, -1);
	delete from autopost.messages m where m.workspace_id = p_workspace_id and m.message_id = any (v_unused);
	get diagnostics v_count = row_count;
	return jsonb_build_object('purged', v_count, 'after', case
		when cardinality(v_ids) = 1000 then jsonb_build_array(v_times[1000], v_ids[1000]) end);
end
$$;
