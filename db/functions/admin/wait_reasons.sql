create or replace function autopost.instant_text(p_at timestamptz) returns text
language sql stable
as $$
-- Purpose: an instant in a sentence: UTC, to the second, the same for each session.
select to_char(p_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
$$;

create or replace function autopost.hold(p_gate text, p_until timestamptz, p_lifts text, p_more jsonb default '{}')
	returns jsonb
language sql stable
as $$
-- Purpose: one wait reason: its end (null: time alone does not end it) and its remedy.
select jsonb_build_object('gate', p_gate, 'until', case when isfinite(p_until) then p_until end, 'lifts', p_lifts)
	|| p_more
$$;

create or replace function autopost.queue_ahead(p_workspace_id text, p_channel_ids text[], p_due_at timestamptz,
	p_key_at timestamptz, p_delivery_id uuid, p_step interval) returns jsonb
language plpgsql stable
as $$
-- Purpose: the deliveries of channels that go before one that is due at p_due_at and has this key and
--          id, at most 10,000 of each channel: {"all", "same": those of the same due time, "turn":
--          when the queue of those that are not due yet ends, if each takes a step from its due time
--          on; null without one}. Deliveries that are due before its key have an earlier key. Of the
--          others, only retries do.
-- Reads:   deliveries.
declare
	v_now timestamptz := autopost.now_ts();
	v_all bigint;
	v_same bigint := 0;
	v_turn timestamptz;
begin
	select coalesce(sum(a.n + b.n), 0) into v_all
	from unnest(p_channel_ids) u (channel_id)
	cross join lateral (
		select count(*) as n from (
			select 1 from autopost.deliveries d
			where d.workspace_id = p_workspace_id and d.channel_id = u.channel_id
			and d.phase in ('active', 'retry') and d.status <> 'sending'
			and (d.due_at, d.delivery_id) < (p_key_at, p_delivery_id)
			limit 10000) x) a
	cross join lateral (
		select count(*) as n from (
			select 1 from autopost.deliveries d
			where d.workspace_id = p_workspace_id and d.channel_id = u.channel_id
			and d.phase = 'retry' and d.due_at <= p_due_at
			and (greatest(d.not_before, d.scheduled_for), d.delivery_id) < (p_key_at, p_delivery_id)
			and (d.due_at, d.delivery_id) >= (p_key_at, p_delivery_id)
			limit 10000) x) b;
	if p_due_at > v_now then
		select count(*) filter (where l.due_at = p_due_at), max(l.due_at + l.behind * p_step) into v_same, v_turn
		from (
			select x.due_at, row_number() over (order by x.due_at desc, x.delivery_id desc) as behind
			from unnest(p_channel_ids) u (channel_id)
			cross join lateral (
				(select d.due_at, d.delivery_id from autopost.deliveries d
				where d.workspace_id = p_workspace_id and d.channel_id = u.channel_id
				and d.phase in ('active', 'retry') and d.status <> 'sending' and d.due_at > v_now
				and (d.due_at, d.delivery_id) < (p_key_at, p_delivery_id)
				order by d.due_at desc, d.delivery_id desc limit 10000)
				union all
				(select d.due_at, d.delivery_id from autopost.deliveries d
				where d.workspace_id = p_workspace_id and d.channel_id = u.channel_id
				and d.phase = 'retry' and d.due_at > v_now and d.due_at <= p_due_at
				and (greatest(d.not_before, d.scheduled_for), d.delivery_id) < (p_key_at, p_delivery_id)
				and (d.due_at, d.delivery_id) >= (p_key_at, p_delivery_id)
				order by d.due_at desc, d.delivery_id desc limit 10000)) x) l;
	end if;
	return jsonb_build_object('all', v_all, 'same', v_same, 'turn', v_turn);
end
$$;

create or replace function autopost.group_ahead(p_workspace_id text, p_limit autopost.platform_limits,
	p_due_at timestamptz, p_key_at timestamptz, p_delivery_id uuid) returns jsonb
language plpgsql stable
as $$
-- Purpose: queue_ahead of all channels of a rate group; null for a group without a limit.
-- Reads:   channels, deliveries.
begin
	if coalesce(p_limit.rate_rps, 0) = 0 then
		return null;
	end if;
	return autopost.queue_ahead(p_workspace_id, array(
		select c.channel_id from autopost.channels c
		where c.workspace_id = p_workspace_id and c.platform = p_limit.platform and c.rate_group = p_limit.rate_group),
		p_due_at, p_key_at, p_delivery_id, autopost.slot_step(p_limit.rate_rps, 1));
end
$$;

create or replace function autopost.turn_after(p_ahead jsonb, p_step interval, p_from timestamptz, p_at timestamptz)
	returns timestamptz
language sql immutable parallel safe
as $$
-- Purpose: the turn of a delivery that may go at p_at, in a queue that is served from p_from on.
--          p_ahead: see queue_ahead; "planned": more deliveries that come at the same time.
select greatest(p_at, p_from + (p_ahead ->> 'all')::int * p_step, (p_ahead ->> 'turn')::timestamptz)
	+ coalesce((p_ahead ->> 'planned')::int * p_step, interval '0')
$$;

create or replace function autopost.still_ahead(p_ahead jsonb, p_step interval, p_from timestamptz, p_at timestamptz,
	p_turn timestamptz) returns int
language sql immutable parallel safe
as $$
-- Purpose: how many deliveries are still before it when a delivery may go at p_at. Without a step,
--          those that may go by then have gone.
select case
	when p_step > interval '0' then least((p_ahead ->> 'all')::int + coalesce((p_ahead ->> 'planned')::int, 0),
		ceil(extract(epoch from p_turn - p_at) / extract(epoch from p_step))::int)
	when p_from >= p_at then (p_ahead ->> 'all')::int
	else (p_ahead ->> 'same')::int end
$$;

create or replace function autopost.time_holds(
	p_channel autopost.channels, p_limit autopost.platform_limits, p_row jsonb, p_now timestamptz
) returns jsonb
language sql stable
as $$
-- Purpose: the wait reasons of a delivery with a known end: times of its row, pauses, cooldowns,
--          used-up quotas, the next probe of an open breaker, a spent budget. p_row: see
--          wait_reasons.
select coalesce(jsonb_agg(autopost.hold(h.gate, h.until, h.lifts) order by h.n), '[]')
from (values
	(1, 'not_before', (p_row ->> 'not_before')::timestamptz, 'nothing but time'),
	(2, 'scheduled_for', (p_row ->> 'scheduled_for')::timestamptz, 'the time it is scheduled for'),
	(3, 'retry', (p_row ->> 'next_retry_at')::timestamptz, 'the end of the wait after its last failure'),
	(4, case when p_channel.auth_held then 'auth_lost' else 'channel_paused' end, p_channel.paused_until, case
		when p_channel.auth_held then 'another secret for its credential (autopost credential set), or rotate_auth, and requeue_auth_lost; the platform refused the present one'
		when p_channel.rights_held is null then 'resume_channel, or the end of the pause'
		else format('the rights of its bot (%s), or resume_channel', p_channel.rights_held) end),
	(5, 'channel_cooldown', p_channel.cooldown_until, 'nothing but time: the platform asked the channel to wait'),
	(6, 'group_cooldown', p_limit.cooldown_until, 'nothing but time: the platform asked the rate group to wait'),
	(7, 'channel_quota', (p_row ->> 'quota_until')::timestamptz, 'free posts or calls in the channel''s quota'),
	(8, 'group_quota', p_limit.quota_until, 'free posts or calls in the rate group''s quota'),
	(9, 'budget', (p_row ->> 'budget_until')::timestamptz, 'the next month, or a larger budget for the credential'),
	(10, 'breaker', case when p_limit.breaker_opened_at is not null
		then greatest(p_now, p_limit.probe_at) + interval '1 microsecond' end,
		'a probe that succeeds: the platform is taken to be down')
) h (n, gate, until, lifts)
where h.until > p_now and isfinite(h.until)
$$;

create or replace function autopost.channel_turn(p_channel autopost.channels, p_ahead jsonb, p_from timestamptz,
	p_at timestamptz) returns timestamptz
language plpgsql stable
as $$
-- Purpose: turn_after for a channel that is served from p_from on, in its posting window only.
declare
	v_step interval := autopost.slot_step(p_channel.effective_rps, 1);
	v_work interval := (p_ahead ->> 'all')::int * v_step;
	v_from timestamptz := greatest(p_from, p_channel.next_allowed_at);
begin
	if p_channel.window_mode = 'windowed' and v_work > interval '0' and isfinite(v_from) then
		v_from := coalesce(autopost.after_open_time(autopost.posting_spans(coalesce(p_channel.timezone, 'UTC'),
			p_channel.posting_window, v_from, 92), v_work), v_from + v_work) - v_work;
	end if;
	return autopost.turn_after(p_ahead, v_step, v_from, p_at);
end
$$;

create or replace function autopost.rate_holds(
	p_channel autopost.channels, p_limit autopost.platform_limits, p_row jsonb, p_served timestamptz, p_at timestamptz
) returns jsonb
language plpgsql stable
as $$
-- Purpose: the wait reasons of a delivery that may go at p_at as far as it alone is concerned: the
--          deliveries that are then still before it, and the rate slots of its channel and group.
--          p_served: the channel sends from then on.
declare
	v_step interval := autopost.slot_step(p_channel.effective_rps, 1);
	v_group_step interval := autopost.slot_step(p_limit.rate_rps, 1);
	v_turn timestamptz := autopost.channel_turn(p_channel, p_row -> 'ahead', p_served, p_at);
	v_ahead int := autopost.still_ahead(p_row -> 'ahead', v_step, p_served, p_at, v_turn);
	v_group_turn timestamptz := greatest(p_at, p_limit.next_allowed_at);
	v_holds jsonb := '[]';
begin
	if jsonb_typeof(p_row -> 'group_ahead') = 'object' then
		v_group_turn := greatest(autopost.turn_after(p_row -> 'group_ahead', v_group_step,
			greatest(least(p_served, autopost.now_ts()), p_limit.next_allowed_at, p_limit.cooldown_until,
				p_limit.quota_until), p_at), p_served + (p_row #>> '{ahead,all}')::int * v_group_step);
	end if;
	if v_ahead > 0 then
		v_holds := v_holds || autopost.hold('queue', null, 'the deliveries before it',
			jsonb_build_object('ahead', v_ahead));
	end if;
	if v_turn > p_at then
		v_holds := v_holds || autopost.hold('channel_rate', v_turn, case when p_channel.limited_rps is null
			then 'its turn at the channel''s rate_rps'
			else 'its turn: the platform limited the channel, which is slower until its posts are sent again' end,
			jsonb_strip_nulls(jsonb_build_object('rate_rps', p_channel.rate_rps, 'effective_rps', case
				when p_channel.limited_rps > 0 then trim_scale(round(p_channel.effective_rps, 6)) end)));
	end if;
	if v_group_turn > p_at then
		v_holds := v_holds || autopost.hold('group_rate', v_group_turn, 'its turn at the rate group''s rate_rps',
			jsonb_build_object('rate_rps', p_limit.rate_rps, 'ahead', coalesce(autopost.still_ahead(
				p_row -> 'group_ahead', v_group_step, p_served, p_at, v_group_turn), 0)));
	end if;
	return v_holds;
end
$$;

create or replace function autopost.wait_reasons(
	p_status text, p_channel autopost.channels, p_limit autopost.platform_limits, p_row jsonb, p_now timestamptz
) returns jsonb
language plpgsql stable
as $$
-- Purpose: the wait reasons of a delivery, as claim and start apply them, and its estimated time if
--          nothing changes. The duration of calls is unknown: a channel without a rate, or at its
--          limit, holds the delivery without an instant. What waits or is in flight now counts only
--          as far as it is still there then. p_status: of the workspace. p_row: {"not_before",
--          "scheduled_for", "next_retry_at", "ahead": queue_ahead, "group_ahead", "inflight": of
--          its channel, "in_flight": their ids, "credential": credential_gap}.
-- Returns: {"send_at": null if time alone does not end the wait, "held_by": [{"gate", "until",
--          "lifts"}]}.
declare
	v_held jsonb := '[]';
	v_times jsonb := autopost.time_holds(p_channel, p_limit, p_row, p_now);
	v_rates jsonb;
	v_free timestamptz; -- later only the window and the rates hold it
	v_since timestamptz := least(p_now, autopost.now_ts()); -- the queue is served since
	v_served timestamptz; -- the channel is served again from then on
	v_open timestamptz;
	v_turn timestamptz;
	v_at timestamptz;
begin
	if p_status <> 'active' then
		v_held := v_held || autopost.hold('workspace', null, 'an active workspace',
			jsonb_build_object('status', p_status));
	end if;
	if not p_channel.enabled then
		v_held := v_held || autopost.hold('channel_disabled', null, 'resume_channel');
	end if;
	if p_channel.paused_until = 'infinity' then
		v_held := v_held || autopost.hold('channel_paused', null, 'resume_channel');
	end if;
	if p_channel.held_until is not null then
		v_held := v_held || autopost.hold('channel_paused', null,
			'mode live in the x-posts config, and GLOBAL_X_POSTING_ENABLED other than false');
	end if;
	if p_row #> '{credential,auth_ref}' is not null then
		v_held := v_held || autopost.hold('credential_missing', null, p_row #>> '{credential,why}' || ': '
			|| (p_row #>> '{credential,command}'), jsonb_build_object('auth_ref', p_row #> '{credential,auth_ref}'));
	end if;
	if (p_row ->> 'next_retry_at')::timestamptz = 'infinity' then
		v_held := v_held || autopost.hold('unknown_outcome', null,
			'the decision of an operator: autopost deliveries resolve');
	end if;
	select greatest(p_now, max((t.value ->> 'until')::timestamptz)) into v_free from jsonb_array_elements(v_times) t;
	v_open := autopost.opens_at(p_channel.window_mode, p_channel.timezone, p_channel.posting_window, v_free);
	if isfinite(v_open) then
		v_served := autopost.opens_at(p_channel.window_mode, p_channel.timezone, p_channel.posting_window, (
			select greatest(v_since, max((t.value ->> 'until')::timestamptz)) from jsonb_array_elements(v_times) t
			where t.value ->> 'gate' not in ('not_before', 'scheduled_for', 'retry')));
		v_rates := autopost.rate_holds(p_channel, p_limit, p_row, v_served, v_open);
		select greatest(v_open, max((r.value ->> 'until')::timestamptz)) into v_turn
			from jsonb_array_elements(v_rates) r;
		v_at := autopost.opens_at(p_channel.window_mode, p_channel.timezone, p_channel.posting_window, v_turn);
	end if;
	if v_open > v_free then
		v_times := v_times || autopost.hold('window', v_open,
			case when isfinite(v_open) then 'the opening of the posting window'
				else 'a posting window that opens: this one never does' end);
	end if;
	if v_open <= v_since and (p_row ->> 'inflight')::int >= p_channel.max_parallel then
		v_times := v_times || autopost.hold('max_parallel', null, 'the end of a call of the channel', 
			jsonb_strip_nulls(jsonb_build_object('max_parallel', p_channel.max_parallel, 'deliveries',
				p_row -> 'in_flight')));
	end if;
	if v_at > v_turn then
		v_rates := v_rates || autopost.hold('window', v_at,
			'the next opening of the posting window: its turn comes after this one closes');
	end if;
	return jsonb_build_object('send_at', case when v_held = '[]' then v_at end, 'held_by',
		v_held || v_times || coalesce(v_rates, '[]'));
end
$$;
