create or replace function autopost.test_webhook(p_workspace_id text, p_webhook_id text, p_operator text, p_reason text)
	returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: queues an event of type webhook.test. It is sent as others, but only once;
--          list_webhook_deliveries shows the result.
-- Returns: {"applied": true, "webhook_id", "event_id"}; or {"applied": false, "reason":
--          "unknown_webhook" | "disabled"}.
-- Raises:  AP001 for a wrong argument.
-- Locks:   audit_heads.
-- Reads:   result_webhooks.
-- Writes:  webhook_sends, admin_audit_log.
declare
	v_act jsonb;
	v_enabled boolean;
	v_now timestamptz;
	v_id uuid := autopost.new_id();
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_act := autopost.manual_act(p_operator, p_reason, false);
	perform autopost.require_argument('webhook_id', p_webhook_id <> '');
	select w.enabled into v_enabled from autopost.result_webhooks w
	where w.workspace_id = p_workspace_id and w.webhook_id = p_webhook_id for key share of w;
	if v_enabled is not true then
		return jsonb_build_object('applied', false, 'reason', case when v_enabled is null then 'unknown_webhook'
			else 'disabled' end);
	end if;
	v_now := autopost.now_ts();
	insert into autopost.webhook_sends (workspace_id, webhook_id, event_id, event_type, event_at, body, due_at,
		created_at)
	values (p_workspace_id, p_webhook_id, v_id, 'webhook.test', v_now,
		autopost.result_body('webhook.test', v_now,
			jsonb_build_object('workspace_id', p_workspace_id, 'webhook_id', p_webhook_id)), v_now, v_now);
	perform autopost.audit(p_workspace_id, 'test_webhook', 'webhook:' || p_webhook_id, v_act, '{}',
		jsonb_build_object('event_id', v_id));
	return jsonb_build_object('applied', true, 'webhook_id', p_webhook_id, 'event_id', v_id);
end
$$;
