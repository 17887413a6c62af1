create or replace function autopost.check_alerts(p_workspace_id text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: checks a workspace for problems: raises new alerts, updates open ones, and ends those
--          without a problem for alert_calm_seconds. Deletes up to 100 alerts that ended before
--          alert_retention_days. A concurrent check does nothing.
-- Returns: {"raised", "ended", "open"}.
-- Locks:   alerts.
-- Reads:   settings, deliveries, post_acts, channels, channel_gates, platform_limits, submissions,
--          credential_health, pull_sources, pull_cursors, result_webhooks, webhook_sends,
--          bot_rules, bot_inbox, bot_outbox, bot_logs.
-- Writes:  alerts, alert_messages.
declare
	v_level jsonb := autopost.alert_levels();
	v_now timestamptz;
	v_kept_from timestamptz;
begin
	perform autopost.enter_workspace(p_workspace_id);
	if not autopost.is_looking(p_workspace_id, 'workspace') then
		return '{"raised": 0, "ended": 0, "open": 0}';
	end if;
	v_now := autopost.now_ts();
	v_kept_from := autopost.kept_from('alert_retention_days');
	delete from autopost.alerts a
	where a.workspace_id = p_workspace_id and a.alert_id = any (array(
		select x.alert_id from autopost.alerts x
		where x.workspace_id = p_workspace_id and x.ended_at < v_kept_from
			order by x.ended_at limit 100));
	delete from autopost.alert_messages m
	where m.workspace_id = p_workspace_id and m.status not in ('pending', 'sending')
		and m.ended_at < v_kept_from;
	update autopost.alerts a set ended_at = v_now
	where a.workspace_id = p_workspace_id and a.kind = 'platform_wait' and a.ended_at is null
	and not exists (
		select 1 from autopost.channels c
		where c.workspace_id = p_workspace_id and a.subject = 'channel:' || c.channel_id
			and c.channel_id = substr(a.subject, 9)
		and c.cooldown_until > v_now - autopost.setting_interval('alert_calm_seconds'))
	and not exists (
		select 1 from autopost.platform_limits l
		where l.workspace_id = p_workspace_id and a.subject = format('group:%s/%s', l.platform, l.rate_group)
		and l.cooldown_until > v_now - autopost.setting_interval('alert_calm_seconds'));
	return autopost.settle_alerts(p_workspace_id, 'workspace', array(
		select f.* from autopost.look_at_deliveries(p_workspace_id, v_level, v_now) f
		union all select f.* from autopost.look_at_channels(p_workspace_id, v_level, v_now) f
		union all select f.* from autopost.look_at_submissions(p_workspace_id, v_level, v_now) f
		union all select f.* from autopost.look_at_connections(p_workspace_id, v_level, v_now) f
		union all select f.* from autopost.look_at_refusals(p_workspace_id, v_now) f
		union all select f.* from autopost.look_at_held(p_workspace_id, v_level) f
		union all select f.* from autopost.look_at_bot(p_workspace_id, v_level, v_now) f
		union all select f.* from autopost.look_at_webhooks(p_workspace_id, v_level, v_now) f));
end
$$;
