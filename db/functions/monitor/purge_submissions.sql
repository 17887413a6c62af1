create or replace function autopost.purge_submissions(p_workspace_id text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: deletes up to 5,000 submissions, oldest first, that ended before delivery_retention_days
--          and have no receipt. Waiting ones stay at any age. It also deletes drafts that were
--          submitted before receipt_ttl_hours, and occurrences that ended before
--          delivery_retention_days.
-- Returns: {"purged", "more"}.
-- Locks:   submissions (skip locked).
-- Reads:   ingress_receipts.
-- Writes:  submissions with their messages and presses in chats, event_hashes (expired ones), drafts, occurrences,
--          moderation_presses (without a submission, after a day).
declare
	v_before timestamptz;
	v_receipt timestamptz;
	v_ids uuid[];
	v_now timestamptz;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_before := autopost.kept_from('delivery_retention_days');
	v_receipt := autopost.oldest_receipt(p_workspace_id) - interval '1 day';
	select array_agg(x.submission_id) into v_ids
	from (
		select s.submission_id from autopost.submissions s
		where s.workspace_id = p_workspace_id and s.status in ('skipped', 'enqueued', 'rejected', 'expired', 'failed')
		and s.updated_at < least(v_before, v_receipt)
		order by s.updated_at
		limit 5000
		for update skip locked) x;
	v_now := autopost.now_ts();
	delete from autopost.event_hashes h
	where h.workspace_id = p_workspace_id and h.expires_at <= v_now;
	delete from autopost.drafts d
	where d.workspace_id = p_workspace_id
	and d.submitted_at < v_now - autopost.setting_interval('receipt_ttl_hours');
	delete from autopost.occurrences o
	where o.workspace_id = p_workspace_id and o.status <> 'expected' and o.updated_at < v_before;
	delete from autopost.moderation_presses p
	where p.workspace_id = p_workspace_id and p.submission_id is null
	and p.pressed_at < v_now - interval '1 day';
	delete from autopost.submissions s
	where s.workspace_id = p_workspace_id and s.submission_id = any (v_ids);
	return jsonb_build_object('purged', coalesce(cardinality(v_ids), 0), 'more',
		coalesce(cardinality(v_ids), 0) = 5000);
end
$$;
