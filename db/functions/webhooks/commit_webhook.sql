create or replace function autopost.commit_webhook(p_workspace_id text, p_webhook_id text, p_event_id uuid,
	p_claim_token text, p_outcome jsonb) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: commits the outcome of a call: {"http_status", "retry_after_ms", "error"}, without
--          http_status if no answer arrived. 2xx: delivered. 410: the webhook is disabled. Any
--          other outcome is retried by the policy of result_webhook (retry_policies), never before
--          the receiver's own wait, which is capped at a day; after the last try it is dead. A test
--          is tried once. A webhook is disabled if all its calls fail for webhook_disable_days.
-- Returns: {"applied": true, "status", "due_at"}, or {"applied": false, "reason": "stale"}: the
--          claim is over.
-- Raises:  AP001 for a wrong argument.
-- Locks:   result_webhooks, webhook_sends, audit_heads.
-- Writes:  webhook_sends, result_webhooks, alerts, admin_audit_log.
declare
	v_webhook autopost.result_webhooks;
	v_send autopost.webhook_sends;
	v_policy autopost.retry_policies := autopost.retry_policy(p_workspace_id, 'result_webhook', '*');
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
	perform autopost.require_argument('webhook_id', p_webhook_id is not null),
		autopost.require_argument('event_id', p_event_id is not null),
		autopost.require_argument('claim_token', p_claim_token <> ''),
			autopost.require_argument('outcome', jsonb_typeof(p_outcome) = 'object');
	select w.* into v_webhook from autopost.result_webhooks w
	where w.workspace_id = p_workspace_id and w.webhook_id = p_webhook_id for no key update of w;
	select s.* into v_send from autopost.webhook_sends s
	where s.workspace_id = p_workspace_id and s.webhook_id = p_webhook_id and s.event_id = p_event_id
		and s.status = 'sending' and s.claim_token = p_claim_token
	for no key update of s;
	if v_send.event_id is null then
		return '{"applied": false, "reason": "stale"}';
	end if;
	v_now := autopost.now_ts();
	v_http := (p_outcome ->> 'http_status')::int;
	v_ok := coalesce(v_http between 200 and 299, false);
	v_error := case when not v_ok then
		left(autopost.redact(coalesce(p_outcome ->> 'error', 'the answer was ' || v_http)), 500) end;
	v_final := v_send.event_type = 'webhook.test' or v_send.attempt >= v_policy.max_attempts;
	v_wait := (p_outcome ->> 'retry_after_ms')::numeric;
	v_due := v_now + greatest(autopost.retry_delay(v_policy, v_send.attempt, null, v_luck),
		case when v_wait > 0 then autopost.retry_delay(v_policy, v_send.attempt, least(v_wait, 86400000), v_luck) end);
	update autopost.webhook_sends s
	set status = case when v_ok then 'delivered' when v_final then 'dead' else 'pending' end, claim_token = null,
		http_status = v_http, error = v_error,
		due_at = case when v_ok or v_final then s.due_at else v_due end, finished_at = case when v_ok
			or v_final then v_now end
	where s.workspace_id = p_workspace_id and s.webhook_id = p_webhook_id and s.event_id = p_event_id
		and s.status = 'sending';
	if v_ok <> (v_webhook.failing_since is null) then
		update autopost.result_webhooks w set failing_since = case when not v_ok then v_now end
		where w.workspace_id = p_workspace_id and w.webhook_id = p_webhook_id;
	end if;
	if not v_ok and v_webhook.enabled
		and (v_http = 410 or v_webhook.failing_since < v_now - autopost.setting_interval('webhook_disable_days')) then
		perform autopost.disable_webhook(p_workspace_id, p_webhook_id, case v_http when 410 then 'gone'
			else 'failing' end, v_error);
	end if;
	return jsonb_strip_nulls(jsonb_build_object('applied', true, 'status', case when v_ok then 'delivered'
		when v_final then 'dead' else 'pending' end,
		'due_at', case when not v_ok and not v_final then v_due end));
end
$$;

create or replace function autopost.commit_webhook_batch(p_workspace_id text, p_items jsonb) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: commit_webhook for many calls in one transaction. p_items: [{"webhook_id", "event_id",
--          "claim_token", "outcome"}]. A webhook that accepted any of them is not failing.
-- Returns: an array of its answers in the same order.
-- Locks:   result_webhooks (webhook_id), webhook_sends, audit_heads.
-- Writes:  webhook_sends, result_webhooks, alerts, admin_audit_log.
declare
	v_now timestamptz;
	v_https int[];
	v_webhook_ids text[];
	v_event_ids uuid[];
	v_delivered bigint[];
	v_well text[];
	v_answers jsonb;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_array('items', p_items);
	perform autopost.uuids_of(p_items, 'event_id');
	perform 1 from autopost.result_webhooks w
	where w.workspace_id = p_workspace_id and w.webhook_id in (select i.value ->> 'webhook_id'
		from jsonb_array_elements(p_items) i)
	order by w.webhook_id for no key update of w;
	v_now := autopost.now_ts();
	with item as materialized (
		select i.n, i.value ->> 'webhook_id' as webhook_id, (i.value ->> 'event_id')::uuid as event_id,
			i.value ->> 'claim_token' as token, (i.value #>> '{outcome,http_status}')::int as http
		from jsonb_array_elements(p_items) with ordinality i (value, n)
		where i.value #>> '{outcome,http_status}' ~ '^2\d\d$'
		order by 2, 3, 1
	), found as materialized (
		select distinct on (i.webhook_id, i.event_id) i.webhook_id, i.event_id, i.n, i.http
		from item i
		cross join lateral ( -- ordered, so that the planner uses the key first and then any index
			select k.event_id, k.claim_token from autopost.webhook_sends k
			where k.workspace_id = p_workspace_id and k.webhook_id = i.webhook_id and k.event_id >= i.event_id
			order by k.event_id limit 1
			for no key update of k) x
		where x.event_id = i.event_id and x.claim_token = i.token
		order by i.webhook_id, i.event_id, i.n
	)
	select coalesce(array_agg(f.webhook_id), '{}'), coalesce(array_agg(f.event_id), '{}'),
		coalesce(array_agg(f.http), '{}'), coalesce(array_agg(f.n), '{}'),
		coalesce(array_agg(distinct f.webhook_id), '{}')
	into v_webhook_ids, v_event_ids, v_https, v_delivered, v_well from found f;
	perform autopost.finish_calls(p_workspace_id, v_webhook_ids, v_event_ids, v_https, v_now);
	perform autopost.webhooks_do_well(p_workspace_id, v_well);
	select coalesce(jsonb_agg(case when i.n = any (v_delivered) then '{"applied": true, "status": "delivered"}'
		else autopost.commit_webhook(p_workspace_id, i.value ->> 'webhook_id', (i.value ->> 'event_id')::uuid,
			i.value ->> 'claim_token', i.value -> 'outcome') end order by i.n), '[]')
	into v_answers
	from jsonb_array_elements(p_items) with ordinality i (value, n);
	perform autopost.webhooks_do_well(p_workspace_id, v_well);
	return v_answers;
end
$$;
