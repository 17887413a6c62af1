create or replace function autopost.put_webhook(
	p_workspace_id text, p_webhook_id text, p_fields jsonb, p_operator text, p_reason text, p_dry_run boolean
) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: adds or changes a result webhook. p_fields has changed fields (see webhook_rules); null
--          restores the default. It gets events from the moment it is enabled. After a change of
--          signing_ref the previous key also signs for signing_overlap_hours.
-- Returns: {"applied": true, "dry_run", "created", "before", "after", "bound": true if the
--          credential of signing_ref exists}; or {"applied": false, "dry_run"} with reason
--          unchanged, or invalid and "errors": [{"field", "reason", "remedy"}].
-- Raises:  AP001 for a wrong argument.
-- Locks:   workspaces, result_webhooks, audit_heads.
-- Reads:   credential_bindings.
-- Writes:  result_webhooks, webhook_cursors, alerts, admin_audit_log.
declare
	v_act jsonb;
	v_rules constant jsonb := autopost.webhook_rules();
	v_old autopost.result_webhooks;
	v_new autopost.result_webhooks;
	v_now timestamptz;
	v_put jsonb;
	v_answer jsonb;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_act := autopost.manual_act(p_operator, p_reason, p_dry_run);
	perform autopost.require_argument('webhook_id', p_webhook_id <> '');
	if not p_dry_run then
		perform autopost.lock_configuration(p_workspace_id);
		perform 1 from autopost.result_webhooks w where w.workspace_id = p_workspace_id
			and w.webhook_id = p_webhook_id for no key update of w;
	end if;
	select w.* into v_old from autopost.result_webhooks w
		where w.workspace_id = p_workspace_id and w.webhook_id = p_webhook_id;
	perform autopost.check_new_id('webhook_id', p_webhook_id) where v_old.webhook_id is null;
	v_put := autopost.put_row(p_fields, v_rules, case when v_old.webhook_id is not null
		then autopost.row_fields(to_jsonb(v_old), v_rules) end);
	v_answer := autopost.put_answer(v_put,
		case when v_put -> 'errors' = '[]' then autopost.webhook_errors(p_workspace_id, v_put -> 'before',
			v_put -> 'after') end, p_dry_run);
	if v_answer -> 'applied' = 'true' then
		v_answer := v_answer || jsonb_build_object('bound', exists (
			select 1 from autopost.credential_bindings b
			where b.workspace_id = p_workspace_id and b.auth_ref = v_put -> 'after' ->> 'signing_ref'
				and b.platform = 'webhook'));
	end if;
	if v_answer -> 'applied' = 'false' or p_dry_run then
		return v_answer;
	end if;
	v_now := autopost.now_ts();
	v_new := jsonb_populate_record(v_old, v_put -> 'after');
	if v_new.signing_ref <> v_old.signing_ref then
		v_new.old_signing_ref := v_old.signing_ref;
		v_new.old_signing_until := v_now + autopost.setting_interval('signing_overlap_hours');
	end if;
	if v_new.rps <> v_old.rps then
		v_new.next_send_at := v_now;
	end if;
	if v_new.enabled and v_old.enabled is not true then
		v_new.enabled_at := v_now;
		v_new.failing_since := null;
		v_new.disabled_reason := null;
		perform autopost.start_cursor(p_workspace_id);
	end if;
	insert into autopost.result_webhooks (workspace_id, webhook_id, url, signing_ref, old_signing_ref,
		old_signing_until, event_types, channel_ids, tags,
		enabled, rps, max_parallel, timeout_seconds, enabled_at, next_send_at, failing_since, disabled_reason,
			created_at, updated_at)
	values (p_workspace_id, p_webhook_id, v_new.url, v_new.signing_ref, v_new.old_signing_ref, v_new.old_signing_until,
		v_new.event_types, v_new.channel_ids, v_new.tags,
		v_new.enabled, v_new.rps, v_new.max_parallel, v_new.timeout_seconds, coalesce(v_new.enabled_at, v_now),
			coalesce(v_new.next_send_at, v_now), v_new.failing_since, v_new.disabled_reason, v_now, v_now)
	on conflict (workspace_id, webhook_id) do update
	set url = excluded.url, signing_ref = excluded.signing_ref, old_signing_ref = excluded.old_signing_ref,
		old_signing_until = excluded.old_signing_until,
		event_types = excluded.event_types, channel_ids = excluded.channel_ids, tags = excluded.tags,
			enabled = excluded.enabled, rps = excluded.rps,
		max_parallel = excluded.max_parallel, timeout_seconds = excluded.timeout_seconds,
			enabled_at = excluded.enabled_at, next_send_at = excluded.next_send_at,
		failing_since = excluded.failing_since, disabled_reason = excluded.disabled_reason,
			updated_at = excluded.updated_at;
	perform autopost.end_alert(p_workspace_id, 'webhook_disabled', 'webhook:' || p_webhook_id) where v_new.enabled;
	perform autopost.audit(p_workspace_id, 'put_webhook', 'webhook:' || p_webhook_id, v_act, v_answer -> 'before',
		v_answer -> 'after');
	return v_answer;
end
$$;
