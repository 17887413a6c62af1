-- Messages of the bot on their way: slots, retries, unknown outcomes. The stage of deliveries has the same rules.

create or replace function autopost.bot_rate_group(p_workspace_id text, p_provider text, p_auth_ref text) returns text
language plpgsql stable
as $$
-- Purpose: the rate group of a bot: that of the channels with its credential, else its name.
-- Reads:   channels.
begin
	return coalesce((
		select min(c.rate_group) from autopost.channels c
		where c.workspace_id = p_workspace_id and c.platform = p_provider and c.auth_ref = p_auth_ref), p_auth_ref);
end
$$;

create or replace function autopost.bot_chat_pause(p_provider text, p_chat_id text) returns interval
language plpgsql stable
as $$
-- Purpose: the time between two messages in a chat: half a second on MAX, a second on Telegram, in a
--          group as platforms.group_chat_rps says.
-- Reads:   platforms.
begin
	return (
		select make_interval(secs => 1 / coalesce(case when p_chat_id like '-%' then p.group_chat_rps end,
			case p_provider when 'max' then 2 else 1 end)::float8)
		from autopost.platforms p where p.platform = p_provider);
end
$$;

create or replace function autopost.bot_chat_free_at(p_workspace_id text, p_provider text, p_auth_ref text,
	p_chat_id text) returns timestamptz
language plpgsql stable
as $$
-- Purpose: the next free slot of a chat; -infinity if the bot has not written there.
-- Reads:   bot_outbox, platforms.
begin
	return coalesce((
		select max(o.last_call_at) from autopost.bot_outbox o
		where o.workspace_id = p_workspace_id and o.provider = p_provider and o.auth_ref = p_auth_ref
		and o.chat_id = p_chat_id and o.last_call_at is not null)
		+ autopost.bot_chat_pause(p_provider, p_chat_id), '-infinity');
end
$$;

create or replace function autopost.bot_known_posts(p_workspace_id text, p_reply_id uuid) returns jsonb
language plpgsql stable
as $$
-- Purpose: known_posts of a message of the bot with an unknown outcome. Messages of a chat go one by
--          one, so no other one of it can be in doubt for the same text at that time.
-- Reads:   bot_outbox.
declare
	v_reply autopost.bot_outbox;
	v_before jsonb;
	v_others jsonb;
begin
	select o.* into v_reply from autopost.bot_outbox o
	where o.workspace_id = p_workspace_id and o.reply_id = p_reply_id;
	select jsonb_agg(b.provider_message_id) into v_before from (
		select o.provider_message_id from autopost.bot_outbox o
		where o.workspace_id = p_workspace_id and o.provider = v_reply.provider and o.auth_ref = v_reply.auth_ref
		and o.chat_id = v_reply.chat_id and o.provider_message_id is not null and o.last_call_at < v_reply.last_call_at
		order by o.last_call_at desc limit 1) b;
	select jsonb_agg(b.provider_message_id) into v_others from (
		select o.provider_message_id from autopost.bot_outbox o
		where o.workspace_id = p_workspace_id and o.provider = v_reply.provider and o.auth_ref = v_reply.auth_ref
		and o.chat_id = v_reply.chat_id and o.provider_message_id is not null
		and o.last_call_at >= v_reply.last_call_at - interval '5 minutes'
		limit 1000) b;
	return jsonb_build_object('before', coalesce(v_before, '[]'), 'others', coalesce(v_others, '[]'),
		'others_in_doubt', exists (
			select 1 from autopost.bot_outbox o
			where o.workspace_id = p_workspace_id and o.provider = v_reply.provider and o.auth_ref = v_reply.auth_ref
			and o.chat_id = v_reply.chat_id and o.reply_id <> p_reply_id and o.unknown_outcomes > 0
			and o.provider_message_id is null and o.last_call_at >= v_reply.last_call_at - interval '5 minutes'));
end
$$;

create or replace function autopost.bot_end_call(p_workspace_id text, p_reply_id uuid, p_status text, p_error jsonb,
	p_more jsonb) returns jsonb
language plpgsql
as $$
-- Purpose: ends the claim of a locked message of the bot. p_more: {"next_at" of a retry, "granted": the
--          attempt does not count, "provider_message_id", "unknown": the outcome is unknown, "log":
--          false without an event}. A message that has ended is masked, and the next one of its chat
--          may go.
-- Returns: the answer of the commit.
-- Writes:  bot_outbox, events (bot_replied).
declare
	v_now timestamptz := autopost.now_ts();
	v_next timestamptz := (p_more ->> 'next_at')::timestamptz;
	v_final boolean := p_status in ('sent', 'failed_permanent', 'dead');
	v_unknown int := coalesce((p_more ->> 'unknown')::boolean, false)::int;
	v_granted int := coalesce((p_more ->> 'granted')::boolean, false)::int;
	v_reply autopost.bot_outbox;
	v_answer jsonb;
begin
	select o.* into v_reply from autopost.bot_outbox o
	where o.workspace_id = p_workspace_id and o.reply_id = p_reply_id;
	v_answer := jsonb_strip_nulls(jsonb_build_object('applied', true, 'status', p_status, 'attempt', v_reply.attempt
		- v_granted, 'next_retry_at', v_next));
	update autopost.bot_outbox o
	set status = p_status, attempt = o.attempt - v_granted, claim_token = null, claimed_by = null, claimed_at = null,
		started_at = null, next_at = coalesce(v_next, v_now), unknown_outcomes = o.unknown_outcomes + v_unknown,
		provider_message_id = coalesce(p_more ->> 'provider_message_id', o.provider_message_id),
		last_error = coalesce(p_error, o.last_error), sent_at = case when p_status = 'sent' then v_now end,
		rendered_text = case when v_final then autopost.redact(o.rendered_text) else o.rendered_text end,
		settled = jsonb_build_object('token', v_reply.claim_token, 'answer', v_answer),
		finished_at = case when v_final then v_now end
	where o.workspace_id = p_workspace_id and o.reply_id = p_reply_id;
	perform autopost.emit_note(p_workspace_id, 'bot_replied', case p_status when 'sent' then 'ok' else 'error' end,
		null,
		null, p_error, jsonb_build_object('reply_id', p_reply_id, 'provider', v_reply.provider, 'auth_ref',
		v_reply.auth_ref, 'chat_id', v_reply.chat_id, 'status', p_status, 'attempt', v_reply.attempt,
		'provider_message_id', p_more -> 'provider_message_id', 'unknown', nullif(v_unknown = 1, false),
		'next_retry_at', v_next, 'trace_id', v_reply.trace_id))
	where p_more -> 'log' is distinct from 'false';
	perform pg_notify('autopost_wake', 'bot') where v_final and exists (
		select 1 from autopost.bot_outbox o
		where o.workspace_id = p_workspace_id and o.provider = v_reply.provider and o.auth_ref = v_reply.auth_ref
		and o.chat_id = v_reply.chat_id and o.status in ('pending', 'retry'));
	return v_answer;
end
$$;

create or replace function autopost.bot_settle(p_workspace_id text, p_reply_id uuid, p_error jsonb) returns jsonb
language plpgsql
as $$
-- Purpose: settles a failed call of a locked message of the bot. An unknown outcome is sent again once,
--          after the platform has settled; the second one is final. A permanent failure is final. Any
--          other is retried by its policy: dead without attempts. A rate limit, and a failure whose
--          policy says so, cost no attempt.
-- Returns: the answer of the commit.
-- Reads:   retry_policies, platforms.
-- Writes:  as bot_end_call.
declare
	v_reply autopost.bot_outbox;
	v_policy autopost.retry_policies;
	v_unknown boolean := p_error -> 'known' = 'false';
	v_wait interval;
	v_granted boolean;
	v_last boolean;
begin
	select o.* into v_reply from autopost.bot_outbox o
	where o.workspace_id = p_workspace_id and o.reply_id = p_reply_id;
	v_policy := autopost.retry_policy(p_workspace_id, v_reply.provider, case when v_unknown then 'unknown_outcome'
		else autopost.policy_code(p_error) end);
	v_wait := autopost.retry_delay(v_policy, v_reply.attempt, (p_error ->> 'retry_after_ms')::numeric,
		random()::numeric);
	v_last := v_reply.attempt >= coalesce(case when v_policy.costs_attempt then v_policy.max_attempts end,
		autopost.setting('max_attempts')::int);
	if v_unknown then
		if v_reply.unknown_outcomes >= 1 or v_last then
			return autopost.bot_end_call(p_workspace_id, p_reply_id, 'failed_permanent', p_error
				|| jsonb_build_object('code', 'unknown_outcome', 'cause', p_error -> 'code'), '{"unknown": true}');
		end if;
		v_wait := greatest(v_wait, (select make_interval(secs => p.settle_seconds) from autopost.platforms p
			where p.platform = v_reply.provider));
		return autopost.bot_end_call(p_workspace_id, p_reply_id, 'retry', p_error, jsonb_build_object('unknown', true,
			'next_at', autopost.now_ts() + v_wait));
	elsif p_error ->> 'category' = 'PERMANENT' then
		return autopost.bot_end_call(p_workspace_id, p_reply_id, 'failed_permanent', p_error, '{}');
	end if;
	v_granted := not v_policy.costs_attempt or autopost.is_rate_limit(p_error) or autopost.is_outage(p_error)
		and autopost.breaker_is_open(p_workspace_id, v_reply.provider,
			autopost.bot_rate_group(p_workspace_id, v_reply.provider, v_reply.auth_ref));
	if v_last and not v_granted then
		return autopost.bot_end_call(p_workspace_id, p_reply_id, 'dead', p_error, '{}');
	end if;
	return autopost.bot_end_call(p_workspace_id, p_reply_id, 'retry', p_error, jsonb_build_object('granted', v_granted,
		'next_at', autopost.now_ts() + v_wait));
end
$$;

create or replace function autopost.bot_judge(p_workspace_id text, p_provider text, p_rate_group text,
	p_chat_id text, p_reply_id uuid, p_error jsonb) returns void
language plpgsql
as $$
-- Purpose: applies the outcome of a call to the locked rate group (null error: a success): it ends or counts an
--          outage, and a wait for the whole platform pauses the group.
-- Writes:  platform_limits, events (breaker, cooldown), alerts.
declare
	v_wait numeric := (p_error ->> 'retry_after_ms')::numeric;
	v_channel autopost.channels;
begin
	if p_error is null then
		perform autopost.end_outage(p_workspace_id, p_provider, p_rate_group);
	elsif autopost.is_outage(p_error) then
		perform autopost.count_outage(p_workspace_id, p_provider, p_rate_group, array['bot:' || p_chat_id],
			array[p_reply_id], p_error);
	end if;
	if v_wait > 0 and p_error ->> 'scope' = 'platform' or p_error ->> 'category' = 'PERMANENT'
		and p_error ->> 'scope' = 'platform' then
		v_channel.platform := p_provider;
		v_channel.rate_group := p_rate_group;
		perform autopost.cool_down(p_workspace_id, v_channel, 'platform', autopost.now_ts() + coalesce(
			v_wait * interval '1 millisecond', autopost.setting_interval('platform_cooldown_seconds')), p_error);
	end if;
end
$$;

create or replace function autopost.bot_limit(p_workspace_id text, p_provider text, p_rate_group text)
	returns autopost.platform_limits
language plpgsql stable
as $$
-- Purpose: the row of a rate group; all null without one.
-- Reads:   platform_limits.
declare
	v_limit autopost.platform_limits;
begin
	select l.* into v_limit from autopost.platform_limits l
	where l.workspace_id = p_workspace_id and l.platform = p_provider and l.rate_group = p_rate_group;
	return v_limit;
end
$$;

create or replace function autopost.bot_group_slots(p_workspace_id text, p_provider text, p_rate_group text,
	p_limit int, out o_most int, out o_quotas text[])
language plpgsql
as $$
-- Purpose: how many messages of the bot a rate group may take now, and its subjects with quotas; 0 if it cools
--          down, its slots or quota are taken, or another claim has it. A group with an open breaker
--          takes one as its probe. A group without a row gets the limit of its platform.
-- Locks:   platform_limits if limited or its breaker is open, quotas; all with SKIP LOCKED.
-- Writes:  platform_limits.
declare
	v_limit autopost.platform_limits;
	v_now timestamptz;
begin
	o_most := 0;
	select l.* into v_limit from autopost.platform_limits l
	where l.workspace_id = p_workspace_id and l.platform = p_provider and l.rate_group = p_rate_group;
	if not found and autopost.platform_rate(p_provider) > 0 then
		insert into autopost.platform_limits (workspace_id, platform, rate_group, rate_rps, updated_at)
		values (p_workspace_id, p_provider, p_rate_group, autopost.platform_rate(p_provider), autopost.now_ts())
		on conflict (workspace_id, platform, rate_group) do nothing;
		select l.* into v_limit from autopost.platform_limits l
		where l.workspace_id = p_workspace_id and l.platform = p_provider and l.rate_group = p_rate_group;
	end if;
	if v_limit.rate_rps > 0 or v_limit.breaker_opened_at is not null then
		select l.* into v_limit from autopost.platform_limits l
		where l.workspace_id = p_workspace_id and l.platform = p_provider and l.rate_group = p_rate_group
		for no key update of l skip locked;
		if not found then
			return;
		end if;
	end if;
	v_now := autopost.now_ts();
	if greatest(v_limit.cooldown_until, v_limit.quota_until) > v_now
		or v_limit.breaker_opened_at is not null and (v_limit.probe_at > v_now or exists (
			select 1 from autopost.bot_outbox o
			where o.workspace_id = p_workspace_id and o.reply_id = v_limit.probe_id and o.status = 'sending')) then
		return;
	end if;
	select q.subjects, q.room into o_quotas, o_most
	from autopost.within_quota(p_workspace_id, p_provider, p_rate_group, '{}', '{}', p_limit) q;
	o_most := case when v_limit.breaker_opened_at is not null then least(o_most, 1) else o_most end;
end
$$;

create or replace function autopost.bot_claim_of(p_workspace_id text, p_run_id text, p_limit int, p_provider text,
	p_auth_ref text) returns uuid[]
language plpgsql
as $$
-- Purpose: claims up to p_limit due messages of one bot: of each chat only the oldest open one, each
--          with a slot of the chat and of the rate group within the horizon. Without slots the group
--          leaves its messages to a later claim. It never waits.
-- Locks:   as bot_group_slots; bot_outbox with SKIP LOCKED.
-- Writes:  bot_outbox, platform_limits, quota_uses.
declare
	v_group text := autopost.bot_rate_group(p_workspace_id, p_provider, p_auth_ref);
	v_slots record := autopost.bot_group_slots(p_workspace_id, p_provider, v_group, p_limit);
	v_limit autopost.platform_limits := autopost.bot_limit(p_workspace_id, p_provider, v_group);
	v_now timestamptz := autopost.now_ts();
	v_token text; -- of one claim
	v_horizon interval := autopost.slot_horizon();
	v_lease timestamptz := v_now + autopost.setting_interval('sending_lease_seconds');
	v_step interval := autopost.slot_step(v_limit.rate_rps, 1);
	v_next timestamptz := case when v_step is not null then greatest(v_limit.next_allowed_at, v_now) else v_now end;
	v_ids uuid[] := '{}';
	v_row record;
	v_slot timestamptz;
	v_free timestamptz; -- of the quota
begin
	if v_slots.o_most <= 0 or v_next >= v_now + v_horizon then
		return v_ids;
	end if;
	for v_row in
		select o.reply_id, o.chat_id
		from autopost.bot_outbox o
		where o.workspace_id = p_workspace_id and o.provider = p_provider and o.auth_ref = p_auth_ref
		and o.status in ('pending', 'retry') and o.next_at <= v_now
		and not exists (
			select 1 from autopost.bot_outbox e
			where e.workspace_id = p_workspace_id and e.provider = p_provider and e.auth_ref = p_auth_ref
			and e.chat_id = o.chat_id and e.status in ('pending', 'sending', 'retry') and e.reply_id < o.reply_id)
		order by o.next_at, o.reply_id
		limit v_slots.o_most
		for no key update of o skip locked
	loop
		exit when v_next >= v_now + v_horizon;
		v_slot := greatest(v_next, autopost.bot_chat_free_at(p_workspace_id, p_provider, p_auth_ref, v_row.chat_id));
		if v_slot >= v_now + v_horizon then
			update autopost.bot_outbox o set next_at = v_slot - v_horizon / 2
			where o.workspace_id = p_workspace_id and o.reply_id = v_row.reply_id;
			continue;
		end if;
		v_token := gen_random_uuid();
		update autopost.bot_outbox o
		set status = 'sending', attempt = o.attempt + 1, next_at = v_lease, claimed_by = p_run_id, claimed_at = v_now,
			claim_token = v_token, send_at = v_slot, started_at = null
		where o.workspace_id = p_workspace_id and o.reply_id = v_row.reply_id;
		v_ids := v_ids || v_row.reply_id;
		v_next := case when v_step is not null then greatest(v_next, v_now) + v_step else v_next end;
	end loop;
	if v_ids <> '{}' then
		update autopost.platform_limits l set next_allowed_at = v_next
		where l.workspace_id = p_workspace_id and l.platform = p_provider and l.rate_group = v_group
			and v_step is not null;
		insert into autopost.quota_uses (workspace_id, delivery_id, attempt, subject, used_at)
		select p_workspace_id, o.reply_id, o.attempt, autopost.group_subject(p_provider, v_group), v_now
		from autopost.bot_outbox o
		where o.workspace_id = p_workspace_id and o.reply_id = any (v_ids)
		and autopost.group_subject(p_provider, v_group) = any (v_slots.o_quotas)
		on conflict do nothing;
		v_free := case when v_slots.o_quotas is not null then autopost.quota_free_at(p_workspace_id,
			autopost.group_subject(p_provider, v_group), 1, v_now) end;
		perform autopost.hold_group(p_workspace_id, p_provider, v_group, least(v_free,
			v_now + autopost.quota_recheck()))
		where v_free is not null;
		perform autopost.begin_probe(v_limit, v_ids[1], v_now) where v_limit.breaker_opened_at is not null;
	end if;
	return v_ids;
end
$$;
