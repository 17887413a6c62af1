create or replace function autopost.subscribed_bots(p_workspace_id text)
	returns table (endpoint_id text, platform text, auth_ref text)
language plpgsql stable
as $$
-- Purpose: the endpoints that must have a subscription: enabled ones, and those that await a secret
--          from it.
-- Reads:   workspace_endpoints, credential_bindings.
begin
	return query
	select distinct on (b.auth_ref) e.endpoint_id, b.platform, b.auth_ref
	from autopost.workspace_endpoints e
	join autopost.credential_bindings b on b.workspace_id = p_workspace_id and b.auth_ref = e.meta ->> 'auth_ref'
		and b.platform in ('telegram', 'max')
	where e.workspace_id = p_workspace_id and e.kind = 'bot_webhook' and (e.enabled or e.awaits_secret)
	order by b.auth_ref, e.created_at desc, e.endpoint_id desc;
end
$$;

create or replace function autopost.subscription_fault(p_subscription autopost.bot_subscriptions, p_secret_hash text,
	p_wanted jsonb, p_seen jsonb) returns text
language sql stable
as $$
-- Purpose: the reason to subscribe again; null if the platform sends the wanted updates to the
--          wanted URL. p_wanted: {"url", "updates"}; p_seen: {"url": "" if absent, "updates",
--          "error", "error_at": of the last failed push}.
select case
	when coalesce(p_seen ->> 'url', '') = '' then 'it is missing'
	when p_seen ->> 'url' <> p_wanted ->> 'url' then 'it goes elsewhere'
	when not (coalesce(p_seen -> 'updates', '[]') @> (p_wanted -> 'updates')
		and (p_wanted -> 'updates') @> coalesce(p_seen -> 'updates', '[]')) then 'it is for other updates'
	when p_secret_hash is null or p_subscription.given_hash is distinct from p_secret_hash then 'it has another secret'
	when p_seen ->> 'error' ~ '\m401\M' and autopost.timestamp_of(p_seen ->> 'error_at') > p_subscription.subscribed_at
		then 'its secret was refused' end
$$;

create or replace function autopost.subscription_row(p_workspace_id text, p_endpoint_id text)
	returns autopost.bot_subscriptions
language plpgsql
as $$
-- Purpose: locks the subscription of an endpoint and returns it.
-- Locks:   bot_subscriptions.
-- Writes:  bot_subscriptions, if the row is missing.
declare
	v_row autopost.bot_subscriptions;
begin
	insert into autopost.bot_subscriptions (workspace_id, endpoint_id)
		values (p_workspace_id, p_endpoint_id) on conflict do nothing;
	select s.* into v_row from autopost.bot_subscriptions s
	where s.workspace_id = p_workspace_id and s.endpoint_id = p_endpoint_id
	for no key update of s;
	return v_row;
end
$$;

create or replace function autopost.fail_subscription(p_workspace_id text, p_row autopost.bot_subscriptions,
	p_error jsonb) returns void
language plpgsql
as $$
-- Purpose: records a failed check or subscription. The caller holds the lock of its row.
-- Reads:   workspace_endpoints, credential_bindings.
-- Writes:  bot_subscriptions, alerts.
declare
	v_policy autopost.retry_policies;
	v_now timestamptz;
	v_delay interval;
begin
	v_policy := (select autopost.retry_policy(p_workspace_id, b.platform, p_error ->> 'code')
		from autopost.workspace_endpoints e
		join autopost.credential_bindings b on b.workspace_id = p_workspace_id and b.auth_ref = e.meta ->> 'auth_ref'
		where e.workspace_id = p_workspace_id and e.endpoint_id = p_row.endpoint_id);
	v_delay := coalesce(autopost.retry_delay(v_policy, p_row.failures + 1, (p_error ->> 'retry_after_ms')::numeric,
		random()::numeric), autopost.setting_interval('subscription_check_seconds'));
	v_now := autopost.now_ts();
	update autopost.bot_subscriptions s
	set checked_at = v_now, failures = s.failures + 1, error = autopost.normalised_error(p_error),
		next_check_at = v_now + v_delay
	where s.workspace_id = p_workspace_id and s.endpoint_id = p_row.endpoint_id;
	if p_row.failures > 0 or p_error ->> 'category' = 'PERMANENT' then
		perform autopost.raise_alert(p_workspace_id, 'subscription', 'endpoint:' || p_row.endpoint_id, p_error, '{}');
	end if;
end
$$;
