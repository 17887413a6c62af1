create or replace function autopost.remove_webhook(p_workspace_id text, p_webhook_id text, p_operator text,
	p_reason text, p_dry_run boolean) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: removes a result webhook with all its sent and waiting requests.
-- Returns: {"applied": true, "dry_run", "before", "after": {}}; or {"applied": false, "dry_run",
--          "reason": "unknown_webhook"}.
-- Raises:  AP001 for a wrong argument.
-- Locks:   workspaces, result_webhooks, webhook_sends, audit_heads.
-- Writes:  result_webhooks, webhook_sends, alerts, admin_audit_log.
declare
	v_act jsonb;
	v_webhook autopost.result_webhooks;
	v_before jsonb;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_act := autopost.manual_act(p_operator, p_reason, p_dry_run);
	perform autopost.require_argument('webhook_id', p_webhook_id <> '');
	if not p_dry_run then
		perform autopost.lock_configuration(p_workspace_id);
		perform 1 from autopost.result_webhooks w where w.workspace_id = p_workspace_id
			and w.webhook_id = p_webhook_id for update of w;
	end if;
	select w.* into v_webhook from autopost.result_webhooks w
		where w.workspace_id = p_workspace_id and w.webhook_id = p_webhook_id;
	if v_webhook.webhook_id is null then
		return jsonb_build_object('applied', false, 'dry_run', p_dry_run, 'reason', 'unknown_webhook');
	end if;
	v_before := autopost.row_fields(to_jsonb(v_webhook), autopost.webhook_rules());
	if not p_dry_run then
		delete from autopost.result_webhooks w where w.workspace_id = p_workspace_id and w.webhook_id = p_webhook_id;
		perform autopost.end_alert(p_workspace_id, 'webhook_disabled', 'webhook:' || p_webhook_id);
		perform autopost.audit(p_workspace_id, 'remove_webhook', 'webhook:' || p_webhook_id, v_act, v_before, '{}');
	end if;
	return jsonb_build_object('applied', true, 'dry_run', p_dry_run, 'before', v_before, 'after', '{}'::jsonb);
end
$$;
