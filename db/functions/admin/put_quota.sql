create or replace function autopost.put_quota(
	p_workspace_id text, p_subject text, p_window_seconds int, p_fields jsonb, p_operator text, p_reason text,
		p_dry_run boolean
) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: allows at most p_fields.max_sends in any p_window_seconds (1 to 2678400) of p_subject:
--          "channel:ID", or "group:PLATFORM/GROUP" for all its channels together. p_fields.counts:
--          posts (the default) counts posts that the platform has or may have, calls every call
--          that began. A subject may have several windows.
-- Returns: {"applied": true, "dry_run", "created", "before", "after"}, or {"applied": false,
--          "dry_run"} with reason unchanged, or invalid and "errors": [{"field", "reason",
--          "remedy"}].
-- Raises:  AP001 for a wrong argument.
-- Locks:   workspaces, platform_limits, quotas, channel_gates.
-- Writes:  quotas, platform_limits, admin_audit_log.
declare
	v_act jsonb;
	v_quota autopost.quotas;
	v_before jsonb;
	v_put jsonb;
	v_answer jsonb;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_act := autopost.manual_act(p_operator, p_reason, p_dry_run);
	v_quota := autopost.quota_of(p_workspace_id, p_subject, p_window_seconds);
	perform autopost.lock_quota(p_workspace_id, v_quota) where not p_dry_run;
	v_before := (select autopost.row_fields(to_jsonb(q), autopost.quota_rules()) from autopost.quotas q
		where q.workspace_id = p_workspace_id and q.subject = p_subject and q.window_seconds = p_window_seconds);
	v_put := autopost.put_row(p_fields, autopost.quota_rules(), v_before);
	v_answer := autopost.put_answer(v_put, case when v_quota.channel_id is not null and not exists (
		select 1 from autopost.channels c where c.workspace_id = p_workspace_id and c.channel_id = v_quota.channel_id)
		then autopost.field_error('subject', format('must be an existing channel, got %s', v_quota.channel_id),
			'add the channel first') end, p_dry_run);
	if v_answer -> 'applied' = 'true' and not p_dry_run then
		insert into autopost.quotas (workspace_id, channel_id, platform, rate_group, window_seconds, max_sends,
			counts, created_at)
		values (p_workspace_id, v_quota.channel_id, v_quota.platform, v_quota.rate_group,
			p_window_seconds, (v_put -> 'after' ->> 'max_sends')::int, v_put -> 'after' ->> 'counts', autopost.now_ts())
		on conflict (workspace_id, subject, window_seconds) do update
		set max_sends = excluded.max_sends, counts = excluded.counts;
		perform autopost.audit(p_workspace_id, 'put_quota', format('quota:%s/%s', p_subject, p_window_seconds), v_act,
			v_answer -> 'before', v_answer -> 'after');
	end if;
	return v_answer;
end
$$;
