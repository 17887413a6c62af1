create or replace function autopost.begin_subscription(p_workspace_id text, p_endpoint_id text, p_wanted jsonb,
	p_seen jsonb, p_secret_hash text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: compares the platform's report of a bot's subscription (p_seen: {"url": "" if absent,
--          "updates", "error", "error_at"}) with the wanted one (p_wanted: {"url", "updates"}). If
--          they differ, the caller must subscribe with a new secret (p_secret_hash is its SHA-256).
--          The endpoint accepts it from now on, with the old one, until finish_subscription. Only
--          the engine may call it.
-- Returns: {"subscribe": true, "why"}; or {"subscribe": false, "reason": "fine" | "unknown" |
--          "secret_in_use"}.
-- Raises:  AP001 for a wrong argument.
-- Locks:   workspace_endpoints, bot_subscriptions.
-- Writes:  bot_subscriptions, secret_lookup, alerts.
declare
	v_endpoint autopost.workspace_endpoints;
	v_row autopost.bot_subscriptions;
	v_why text;
	v_now timestamptz;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('wanted', p_wanted ->> 'url' <> ''
		and jsonb_typeof(p_wanted -> 'updates') = 'array'), autopost.require_argument('seen',
		jsonb_typeof(p_seen) = 'object'),
		autopost.require_argument('secret_hash', p_secret_hash ~ '^[0-9a-f]{64}$');
	select e.* into v_endpoint from autopost.workspace_endpoints e
	where e.workspace_id = p_workspace_id and e.endpoint_id = p_endpoint_id and e.kind = 'bot_webhook'
		and (e.enabled or e.awaits_secret)
	for no key update of e;
	if v_endpoint.endpoint_id is null then
		return '{"subscribe": false, "reason": "unknown"}';
	end if;
	v_row := autopost.subscription_row(p_workspace_id, p_endpoint_id);
	v_why := autopost.subscription_fault(v_row, v_endpoint.secret_hash, p_wanted, p_seen);
	if v_why is null then
		v_now := autopost.now_ts();
		update autopost.bot_subscriptions s set checked_at = v_now, url = p_wanted ->> 'url', failures = 0,
			error = null
		where s.workspace_id = p_workspace_id and s.endpoint_id = p_endpoint_id;
		perform autopost.end_alert(p_workspace_id, 'subscription', 'endpoint:' || p_endpoint_id);
		return '{"subscribe": false, "reason": "fine"}';
	end if;
	delete from autopost.secret_lookup l
	where l.kind = 'bot_webhook' and l.workspace_id = p_workspace_id and l.subject_id = p_endpoint_id
		and l.secret_hash = v_row.next_hash
	and l.secret_hash is distinct from v_endpoint.secret_hash;
	insert into autopost.secret_lookup (kind, secret_hash, workspace_id, subject_id)
		values ('bot_webhook', p_secret_hash, p_workspace_id, p_endpoint_id)
	on conflict do nothing;
	if not found then
		return '{"subscribe": false, "reason": "secret_in_use"}';
	end if;
	update autopost.bot_subscriptions s set next_hash = p_secret_hash, url = p_wanted ->> 'url', why = v_why
	where s.workspace_id = p_workspace_id and s.endpoint_id = p_endpoint_id;
	return jsonb_build_object('subscribe', true, 'why', v_why);
end
$$;
