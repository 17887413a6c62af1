create or replace function autopost.delete_quota(
	p_workspace_id text, p_subject text, p_window_seconds int, p_operator text, p_reason text, p_dry_run boolean
) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: removes a quota and wakes the deliveries that it held. p_subject and p_window_seconds as
--          in put_quota.
-- Returns: {"applied": true, "dry_run", "before", "after": {}}; or {"applied": false, "dry_run",
--          "reason": "unknown_quota"}.
-- Raises:  AP001 for a wrong argument.
-- Locks:   workspaces, platform_limits, quotas, channel_gates.
-- Writes:  quotas, quota_uses, platform_limits, admin_audit_log.
declare
	v_act jsonb;
	v_quota autopost.quotas;
	v_before jsonb;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_act := autopost.manual_act(p_operator, p_reason, p_dry_run);
	v_quota := autopost.quota_of(p_workspace_id, p_subject, p_window_seconds);
	perform autopost.lock_quota(p_workspace_id, v_quota) where not p_dry_run;
	select autopost.fields_that_differ(autopost.row_fields(to_jsonb(q), autopost.quota_rules()),
		autopost.default_fields(autopost.quota_rules())) into v_before
	from autopost.quotas q
	where q.workspace_id = p_workspace_id and q.subject = p_subject and q.window_seconds = p_window_seconds;
	if v_before is null then
		return jsonb_build_object('applied', false, 'dry_run', p_dry_run, 'reason', 'unknown_quota');
	end if;
	if not p_dry_run then
		delete from autopost.quotas q
		where q.workspace_id = p_workspace_id and q.subject = p_subject and q.window_seconds = p_window_seconds;
		perform autopost.audit(p_workspace_id, 'delete_quota', format('quota:%s/%s', p_subject, p_window_seconds),
			v_act, v_before, '{}');
	end if;
	return jsonb_build_object('applied', true, 'dry_run', p_dry_run, 'before', v_before, 'after', '{}'::jsonb);
end
$$;
