create or replace function autopost.shift_times(
	p_workspace_id text, p_table text, p_keys text[], p_column text, p_states text[], p_from timestamptz,
		p_to timestamptz, p_by interval
) returns void
language plpgsql
as $$
-- Purpose: moves the times of a column between p_from and p_to (exclusive), optionally of rows in
--          these states of a workspace. Locks rows in the order of their key.
declare
	v_where text := format('t.workspace_id = $1 and %s and t.%I > $2 and t.%I < $3',
		case when p_states is null then 'true' else format('t.status = any (%L)', p_states) end, p_column, p_column);
begin
	execute format('select 1 from autopost.%I t where %s order by %s for no key update of t', p_table, v_where,
		(select string_agg(format('t.%I', k), ', ') from unnest(p_keys) k))
	using p_workspace_id, p_from, p_to;
	-- A separate statement: the rows may have changed while it waited for their locks.
	execute format('update autopost.%I t set %I = autopost.later(t.%I, $4) where %s', p_table, p_column, p_column, v_where)
	using p_workspace_id, p_from, p_to, make_interval(secs => extract(epoch from p_by)::float8);
end
$$;

create or replace function autopost.follow_clock(p_workspace_id text) returns interval
language plpgsql
as $$
-- Purpose: moves the times that the engine set by a jump of the clock, so that waits keep their
--          length and due rows stay due. Forward it moves times that the jump passed, backward
--          times further ahead than v_slack. Times within v_slack of now stay: the new clock may
--          have set them. Dates set by people stay.
-- Returns: the jump; null without one.
-- Locks:   workspace_endpoints, pull_cursors, submissions, moderation_chats, moderation_messages,
--          moderation_presses, bot_state, bot_inbox, credential_health, platform_limits, channels, deliveries, post_acts,
--          bot_outbox, bot_subscriptions, discovered_chats, webhook_cursors,
--          result_webhooks, webhook_sends, in this order; gates as rearm_gates.
-- Writes:  the locked tables; clock_debts.
declare
	v_now timestamptz := autopost.now_ts();
	v_jump interval;
	v_slack interval;
	v_from timestamptz;
	v_to timestamptz := 'infinity';
	v_what record;
begin
	with paid as (delete from autopost.clock_debts c where c.workspace_id = p_workspace_id returning c.jump)
	select sum(paid.jump) into v_jump from paid;
	if v_jump is null then
		return null;
	end if;
	v_slack := interval '1 minute'; -- longer than the time between a jump and its detection
	if v_jump > interval '0' then
		v_from := v_now - v_jump;
		v_to := v_now - least(v_slack, v_jump / 2);
	else
		v_from := v_now + v_slack;
	end if;
	for v_what in
		select * from (values
			(1, 'workspace_endpoints', '{endpoint_id}'::text[], 'admitted_until', null::text[]),
			(2, 'pull_cursors', '{source_id}', 'next_poll_at', null),
			(3, 'submissions', '{submission_id}', 'next_attempt_at', '{fetching}'),
			(4, 'submissions', '{submission_id}', 'lease_until', '{fetching}'),
			(4.1, 'moderation_chats', '{chat_id}', 'next_at', null),
			(4.2, 'moderation_chats', '{chat_id}', 'paid_until', null),
			(4.3, 'moderation_messages', '{message_id}', 'lease_until', '{sending, closing}'),
			(4.4, 'moderation_presses', '{press_id}', 'due_at', '{pending, sending}'),
			(4.5, 'moderation_presses', '{press_id}', 'lease_until', '{sending}'),
			(4.6, 'bot_state', '{provider, auth_ref, chat_id}', 'expires_at', null),
			(4.7, 'bot_inbox', '{inbox_id}', 'next_at', '{received}'),
			(5, 'fanout_jobs', '{job_id}', 'next_attempt_at', null),
			(6, 'credential_health', '{auth_ref}', 'next_refresh_at', null),
			(7, 'credential_health', '{auth_ref}', 'lease_until', null),
			(8, 'platform_limits', '{platform, rate_group}', 'next_allowed_at', null),
			(9, 'platform_limits', '{platform, rate_group}', 'cooldown_until', null),
			(10, 'platform_limits', '{platform, rate_group}', 'quota_until', null),
			(11, 'platform_limits', '{platform, rate_group}', 'probe_at', null),
			(12, 'channels', '{channel_id}', 'next_allowed_at', null),
			(13, 'channels', '{channel_id}', 'cooldown_until', null),
			(14, 'channels', '{channel_id}', 'paused_until', null),
			(15, 'channels', '{channel_id}', 'credential_until', null),
			(16, 'deliveries', '{channel_id, delivery_id}', 'sending_lease_until', '{sending}'),
			(17, 'deliveries', '{channel_id, delivery_id}', 'send_at', '{sending}'),
			(18, 'deliveries', '{channel_id, delivery_id}', 'claimed_at', '{claimed}'),
			(19, 'deliveries', '{channel_id, delivery_id}', 'next_retry_at', '{retry}'),
			(20, 'deliveries', '{channel_id, delivery_id}', 'not_before', '{queued, retry}'),
			(21, 'post_acts', '{act_id}', 'next_at', '{retry, sending}'),
			(21.1, 'bot_outbox', '{reply_id}', 'next_at', '{pending, retry, sending}'),
			(21.2, 'bot_outbox', '{reply_id}', 'send_at', '{sending}'),
			(22, 'bot_subscriptions', '{endpoint_id}', 'next_check_at', null),
			(23, 'discovered_chats', '{platform, auth_ref, target_id}', 'ask_at', null),
			(24, 'webhook_cursors', '{workspace_id}', 'done_at', null),
			(25, 'result_webhooks', '{webhook_id}', 'next_send_at', null),
			(26, 'webhook_sends', '{webhook_id, event_id}', 'due_at', '{pending, sending}'))
			as w (place, relation, keys, times, states)
		order by place
	loop
		perform autopost.shift_times(p_workspace_id, v_what.relation, v_what.keys, v_what.times, v_what.states, v_from,
			v_to, v_jump);
	end loop;
	perform autopost.rearm_gates(p_workspace_id);
	return v_jump;
end
$$;
