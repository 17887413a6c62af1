create or replace function autopost.purge_messages(p_workspace_id text, p_after jsonb) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Removes messages that nothing needs any more: no delivery and no event of it is left, no receipt or submission leads to it, and it was
-- last seen before message_retention_days, every dedup window and every receipt's time. Looks at the next 1,000 that have no delivery,
-- oldest first, after p_after (null: from the oldest).
-- A row is locked before it is looked at again: an enqueue of the same content either holds it, and it stays, or waits here, and stores
-- it anew. FOR UPDATE, since it is to be removed; a row that somebody holds is left to them.
-- Returns {"purged", "after": where to go on, null when all were looked at}.
-- Locks: messages (skip locked). Reads: deliveries, events, ingress_receipts, submissions, channels. Writes: messages, message_media.
declare
	v_before timestamptz;
	v_ids uuid[];
	v_times timestamptz[];
	v_told uuid[];
	v_count int;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_before := least(
		autopost.kept_from('message_retention_days'), autopost.kept_from('receipt_ttl_hours'), autopost.kept_from('pull_receipt_ttl_hours'),
		autopost.now_ts() - autopost.longest_dedup_ttl() - interval '1 day',
		autopost.oldest_receipt(p_workspace_id) - interval '1 day', autopost.oldest_submission(p_workspace_id) - interval '1 day');
	select array_agg(x.message_id order by x.created_at, x.message_id), array_agg(x.created_at order by x.created_at, x.message_id) into v_ids, v_times
	from (
		select m.message_id, m.created_at from autopost.messages m
		where m.workspace_id = p_workspace_id and m.created_at < v_before and m.last_seen_at < v_before
		and (m.created_at, m.message_id) > (coalesce((p_after ->> 0)::timestamptz, '-infinity'), coalesce((p_after ->> 1)::uuid, '00000000-0000-0000-0000-000000000000'))
		and not exists (select 1 from autopost.deliveries d where d.workspace_id = p_workspace_id and d.message_id = m.message_id offset 0)
		order by m.created_at, m.message_id
		limit 1000
		for update of m skip locked) x;
	select array_agg(u.message_id) into v_told
	from unnest(v_ids) u (message_id)
	cross join lateral (
		select 1 from autopost.events e
		where e.workspace_id = p_workspace_id and e.message_id = u.message_id
		limit 1) e;
	delete from autopost.messages m
	where m.workspace_id = p_workspace_id and m.message_id = any (v_ids) and m.message_id <> all (coalesce(v_told, '{}'))
	and not exists (select 1 from autopost.deliveries d where d.workspace_id = p_workspace_id and d.message_id = m.message_id offset 0);
	get diagnostics v_count = row_count;
	return jsonb_build_object('purged', v_count, 'after', case when cardinality(v_ids) = 1000 then jsonb_build_array(v_times[1000], v_ids[1000]) end);
end
$$;
