create or replace function autopost.finish_subscription(p_workspace_id text, p_endpoint_id text, p_secret_hash text,
	p_error jsonb) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: ends a subscription. Without p_error the platform accepted it: p_secret_hash, as given
--          to begin_subscription, becomes the endpoint's secret and replaces the old one; an
--          endpoint that awaited a secret is enabled. p_error (error contract) is the reason why it
--          failed or could not be checked. It raises an alert, for transient errors from the second
--          in a row. The retry policy sets the next check. Only the engine may call it.
-- Returns: {"applied": true}; or {"applied": false, "reason": "unknown" | "stale": another daemon
--          set another secret, and a check is due}.
-- Raises:  AP001 for a wrong argument.
-- Locks:   workspace_endpoints, bot_subscriptions, audit_heads.
-- Writes:  workspace_endpoints, bot_subscriptions, secret_lookup, alerts, admin_audit_log.
declare
	v_now timestamptz;
	v_endpoint autopost.workspace_endpoints;
	v_row autopost.bot_subscriptions;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('error', jsonb_typeof(p_error) is not distinct from 'object' or p_error is null),
		autopost.require_argument('secret_hash', p_secret_hash is not null or p_error is not null);
	select e.* into v_endpoint from autopost.workspace_endpoints e
	where e.workspace_id = p_workspace_id and e.endpoint_id = p_endpoint_id and e.kind = 'bot_webhook'
		and (e.enabled or e.awaits_secret)
	for no key update of e;
	if v_endpoint.endpoint_id is null then
		return '{"applied": false, "reason": "unknown"}';
	end if;
	v_row := autopost.subscription_row(p_workspace_id, p_endpoint_id);
	v_now := autopost.now_ts();
	if p_error is not null then
		perform autopost.fail_subscription(p_workspace_id, v_row, p_error);
		return '{"applied": true}';
	elsif v_row.next_hash is distinct from p_secret_hash then
		update autopost.bot_subscriptions s set given_hash = null, next_check_at = v_now
		where s.workspace_id = p_workspace_id and s.endpoint_id = p_endpoint_id;
		return '{"applied": false, "reason": "stale"}';
	end if;
	update autopost.workspace_endpoints e set secret_hash = p_secret_hash, enabled = true, awaits_secret = false
	where e.workspace_id = p_workspace_id and e.endpoint_id = p_endpoint_id;
	update autopost.bot_subscriptions s
	set given_hash = p_secret_hash, next_hash = null, checked_at = v_now, subscribed_at = v_now, failures = 0,
		error = null
	where s.workspace_id = p_workspace_id and s.endpoint_id = p_endpoint_id;
	perform autopost.end_alert(p_workspace_id, 'subscription', 'endpoint:' || p_endpoint_id);
	perform autopost.audit(p_workspace_id, 'subscribed', 'endpoint:' || p_endpoint_id,
		jsonb_build_object('operator', 'autopost', 'reason', v_row.why),
		jsonb_build_object('subscribed_at', v_row.subscribed_at),
			jsonb_build_object('subscribed_at', v_now, 'url', v_row.url));
	return '{"applied": true}';
end
$$;
