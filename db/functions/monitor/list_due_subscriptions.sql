create or replace function autopost.list_due_subscriptions(p_workspace_id text, p_limit int) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: leases bot endpoints whose subscription is due for a check, for
--          subscription_check_seconds. Of several endpoints of a bot it returns the newest: a bot
--          has one subscription. Only the engine may call it.
-- Returns: [{"endpoint_id", "platform", "auth_ref"}].
-- Raises:  AP001 for a limit outside 1 to 10000.
-- Locks:   bot_subscriptions (skip locked).
-- Reads:   workspace_endpoints, credential_bindings.
-- Writes:  bot_subscriptions.
declare
	v_due jsonb;
	v_now timestamptz;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.check_read('{}', '{}', p_limit);
	if autopost.is_restored() then
		return '[]'; -- a subscription would take the updates from the original
	end if;
	insert into autopost.bot_subscriptions (workspace_id, endpoint_id)
	select p_workspace_id, b.endpoint_id from autopost.subscribed_bots(p_workspace_id) b
	on conflict do nothing;
	v_now := autopost.now_ts();
	with due as (
		select s.endpoint_id from autopost.bot_subscriptions s
		where s.workspace_id = p_workspace_id and s.next_check_at <= v_now
		and s.endpoint_id in (select b.endpoint_id from autopost.subscribed_bots(p_workspace_id) b)
		order by s.next_check_at, s.endpoint_id
		limit p_limit
		for no key update of s skip locked
	), leased as (
		update autopost.bot_subscriptions s
			set next_check_at = v_now + autopost.setting_interval('subscription_check_seconds')
		from due d
		where s.workspace_id = p_workspace_id and s.endpoint_id = d.endpoint_id
		returning s.endpoint_id
	)
	select coalesce(jsonb_agg(to_jsonb(b) order by b.endpoint_id), '[]') into v_due
	from autopost.subscribed_bots(p_workspace_id) b
	join leased l on l.endpoint_id = b.endpoint_id;
	return v_due;
end
$$;
