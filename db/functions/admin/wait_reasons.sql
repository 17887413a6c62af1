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

create or replace function autopost.rows_ahead(p_workspace_id text, p_channel_id text, p_due_at timestamptz,
	p_delivery_id uuid) returns int
language plpgsql stable
as $$
-- Purpose: counts the deliveries of a channel before this due time and id; 10,000 means that many
--          or more.
-- Reads:   deliveries.
begin
	return (
		select count(*) from (
			select 1 from autopost.deliveries d
			where d.workspace_id = p_workspace_id and d.channel_id = p_channel_id
			and d.status in ('queued', 'retry')
			and (d.due_at, d.delivery_id) < (p_due_at, p_delivery_id)
			limit 10000) x);
end
$$;

create or replace function autopost.group_ahead(p_workspace_id text, p_limit autopost.platform_limits,
	p_due_at timestamptz, p_delivery_id uuid) returns int
language plpgsql stable
as $$
-- Purpose: rows_ahead of all channels of a rate group; 0 for a group without a limit.
-- Reads:   channels, deliveries.
begin
	return (
		select coalesce(sum(autopost.rows_ahead(p_workspace_id, c.channel_id, p_due_at, p_delivery_id)), 0)
		from autopost.channels c
		where c.workspace_id = p_workspace_id and c.platform = p_limit.platform and c.rate_group = p_limit.rate_group
			and p_limit.rate_rps > 0);
end
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
	(7, 'channel_quota', (p_row ->> 'quota_until')::timestamptz, 'free calls in the channel''s quota'),
	(8, 'group_quota', p_limit.quota_until, 'free calls in the rate group''s quota'),
	(9, 'budget', (p_row ->> 'budget_until')::timestamptz, 'the next month, or a larger budget for the credential'),
	(10, 'breaker', case when p_limit.breaker_opened_at is not null
		then greatest(p_now, p_limit.probe_at) + interval '1 microsecond' end,
		'a probe that succeeds: the platform is taken to be down')
) h (n, gate, until, lifts)
where h.until > p_now and isfinite(h.until)
$$;

create or replace function autopost.rate_holds(
	p_channel autopost.channels, p_limit autopost.platform_limits, p_row jsonb, p_from timestamptz
) returns jsonb
language sql stable
as $$
-- Purpose: the wait reasons of a delivery that is otherwise free at p_from: deliveries before it,
--          and the rate slots of its channel and group.
select coalesce(jsonb_agg(autopost.hold(h.gate, h.until, h.lifts, h.more) order by h.n), '[]')
from (values
	(1, 'queue', null, 'the deliveries before it',
		jsonb_build_object('ahead', p_row -> 'ahead'), (p_row ->> 'ahead')::int > 0),
	(2, 'channel_rate', greatest(p_from, p_channel.next_allowed_at)
			+ (p_row ->> 'ahead')::int * autopost.slot_step(p_channel.rate_rps, 1),
		'its turn at the channel''s rate_rps', jsonb_build_object('rate_rps', p_channel.rate_rps), true),
	(3, 'group_rate', greatest(p_from, p_limit.next_allowed_at)
			+ (p_row ->> 'group_ahead')::int * autopost.slot_step(p_limit.rate_rps, 1),
		'its turn at the rate group''s rate_rps',
			jsonb_build_object('rate_rps', p_limit.rate_rps, 'ahead', p_row -> 'group_ahead'), true)
) h (n, gate, until, lifts, more, holds)
where h.holds and (h.until > p_from or h.n = 1)
$$;

create or replace function autopost.wait_reasons(
	p_status text, p_channel autopost.channels, p_limit autopost.platform_limits, p_row jsonb, p_now timestamptz
) returns jsonb
language plpgsql stable
as $$
-- Purpose: the wait reasons of a delivery, as claim and start apply them, and its estimated time if
--          nothing changes. The duration of calls is unknown: a channel without a rate, or at its
--          limit, holds the delivery without an instant. p_status: of the workspace. p_row:
--          {"not_before", "scheduled_for", "next_retry_at", "ahead", "group_ahead": numbers of
--          deliveries before it, "inflight": of its channel, "in_flight": their ids}.
-- Returns: {"send_at": null if time alone does not end the wait, "held_by": [{"gate", "until",
--          "lifts"}]}.
declare
	v_held jsonb := '[]';
	v_times jsonb := autopost.time_holds(p_channel, p_limit, p_row, p_now);
	v_rates jsonb;
	v_free timestamptz; -- later only the window and the rates hold it
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
		v_rates := autopost.rate_holds(p_channel, p_limit, p_row, v_open);
		select greatest(v_open, max((r.value ->> 'until')::timestamptz)) into v_turn
			from jsonb_array_elements(v_rates) r;
		v_at := autopost.opens_at(p_channel.window_mode, p_channel.timezone, p_channel.posting_window, v_turn);
	end if;
	if v_open > v_free then
		v_times := v_times || autopost.hold('window', v_open,
			case when isfinite(v_open) then 'the opening of the posting window'
				else 'a posting window that opens: this one never does' end);
	end if;
	if (p_row ->> 'inflight')::int >= p_channel.max_parallel then
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
