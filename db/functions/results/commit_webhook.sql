create or replace function autopost.commit_webhook(p_workspace_id text, p_webhook_id text, p_event_id uuid, p_claim_token text, p_outcome jsonb) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- What a call came to: {"http_status", "retry_after_ms", "error"}, without http_status where no answer came. 2xx: delivered. 410: the webhook is
-- disabled. All else is tried again by the ladder of result_webhook (retry_policies), never before the receiver's own wait, of which at most a
-- day counts, and is dead after it; a test is tried once. A webhook of which all calls fail for webhook_disable_days is disabled.
-- Returns {"applied": true, "status", "due_at"}, or {"applied": false, "reason": "stale"}: the claim is over.
-- Locks: result_webhooks, webhook_sends, audit_heads. Writes: webhook_sends, result_webhooks, alerts, admin_audit_log.
declare
	v_webhook autopost.result_webhooks;
	v_send autopost.webhook_sends;
	v_policy autopost.retry_policies := autopost.retry_policy('result_webhook', '*');
	v_http int;
	v_ok boolean;
	v_final boolean;
	v_now timestamptz;
	v_error text;
	v_due timestamptz;
	v_luck numeric := random();
	v_wait numeric;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require('webhook_id', p_webhook_id is not null), autopost.require('event_id', p_event_id is not null),
		autopost.require('claim_token', p_claim_token <> ''), autopost.require('outcome', jsonb_typeof(p_outcome) = 'object');
	select w.* into v_webhook from autopost.result_webhooks w
	where w.workspace_id = p_workspace_id and w.webhook_id = p_webhook_id for no key update of w;
	select s.* into v_send from autopost.webhook_sends s
	where s.workspace_id = p_workspace_id and s.webhook_id = p_webhook_id and s.event_id = p_event_id and s.status = 'sending' and s.claim_token = p_claim_token
	for no key update of s;
	if v_send.event_id is null then
		return '{"applied": false, "reason": "stale"}';
	end if;
	v_now := autopost.now_ts();
	v_http := (p_outcome ->> 'http_status')::int;
	v_ok := coalesce(v_http between 200 and 299, false);
	v_error := case when not v_ok then left(autopost.redact(coalesce(p_outcome ->> 'error', 'the answer was ' || v_http)), 500) end;
	v_final := v_send.event_type = 'webhook.test' or v_send.attempt >= v_policy.max_attempts;
	v_wait := (p_outcome ->> 'retry_after_ms')::numeric;
	v_due := v_now + greatest(autopost.retry_delay(v_policy, v_send.attempt, null, v_luck),
		case when v_wait > 0 then autopost.retry_delay(v_policy, v_send.attempt, least(v_wait, 86400000), v_luck) end);
	update autopost.webhook_sends s
	set status = case when v_ok then 'delivered' when v_final then 'dead' else 'pending' end, claim_token = null, http_status = v_http, error = v_error,
		due_at = case when v_ok or v_final then s.due_at else v_due end, finished_at = case when v_ok or v_final then v_now end
	where s.workspace_id = p_workspace_id and s.webhook_id = p_webhook_id and s.event_id = p_event_id and s.status = 'sending';
	if v_ok <> (v_webhook.failing_since is null) then
		update autopost.result_webhooks w set failing_since = case when not v_ok then v_now end
		where w.workspace_id = p_workspace_id and w.webhook_id = p_webhook_id;
	end if;
	if not v_ok and v_webhook.enabled and (v_http = 410 or v_webhook.failing_since < v_now - autopost.setting_interval('webhook_disable_days')) then
		perform autopost.disable_webhook(p_workspace_id, p_webhook_id, case v_http when 410 then 'gone' else 'failing' end, v_error);
	end if;
	return jsonb_strip_nulls(jsonb_build_object('applied', true, 'status', case when v_ok then 'delivered' when v_final then 'dead' else 'pending' end,
		'due_at', case when not v_ok and not v_final then v_due end));
end
$$;
