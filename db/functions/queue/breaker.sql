create or replace function autopost.is_rate_limit(p_error jsonb) returns boolean
language sql immutable parallel safe
as $$
-- Purpose: true if the platform reports too many requests.
select p_error ->> 'code' ~ '(^|[._])(429|rate_limited|too[._]many[._]requests)$'
$$;

create or replace function autopost.is_outage(p_error jsonb) returns boolean
language sql immutable parallel safe
as $$
-- Purpose: true if a failed call suggests that the platform is down: an unknown outcome, or a
--          transient failure of the platform or the network. A rate limit or missing credit does
--          not.
select p_error -> 'known' = 'false' or (
	p_error ->> 'category' = 'TRANSIENT' and p_error ->> 'scope' = 'platform'
	and not autopost.is_rate_limit(p_error) and p_error ->> 'code' !~ '(^|[._])(usage_capped|no_credits)$')
$$;

create or replace function autopost.probe_pause(p_probes int) returns interval
language plpgsql stable
as $$
-- Purpose: the pause before the next probe of an open breaker.
begin
	return (
		select least(autopost.setting_interval('breaker_probe_cap_seconds'),
			autopost.setting_interval('breaker_probe_seconds') * 2 ^ least(p_probes, 20)));
end
$$;

create or replace function autopost.probes_now(p_limit autopost.platform_limits, p_now timestamptz) returns int
language plpgsql
as $$
-- Purpose: how many deliveries of a group with an open breaker may be claimed: 1 if a probe is due
--          and none is in flight, else 0. A probe in flight gets another pause, because its lease
--          may end without notice. The group is locked.
-- Reads:   deliveries.
-- Writes:  platform_limits.
begin
	if p_limit.probe_at > p_now then
		return 0;
	end if;
	if exists (
		select 1 from autopost.deliveries d
		where d.workspace_id = p_limit.workspace_id and d.delivery_id = p_limit.probe_id and d.status = 'sending'
	) then
		update autopost.platform_limits l
		set probe_at = p_now + autopost.probe_pause(p_limit.probes)
		where l.workspace_id = p_limit.workspace_id and l.platform = p_limit.platform
			and l.rate_group = p_limit.rate_group;
		return 0;
	end if;
	return 1;
end
$$;

create or replace function autopost.begin_probe(p_limit autopost.platform_limits, p_delivery_id uuid,
	p_now timestamptz) returns void
language plpgsql
as $$
-- Purpose: records the probe of an open breaker. The next one waits, whatever the outcome. The
--          group is locked.
-- Writes:  platform_limits.
declare
	v_probe_at timestamptz := p_now + autopost.probe_pause(p_limit.probes + 1);
begin
	update autopost.platform_limits l
	set probe_id = p_delivery_id, probes = l.probes + 1, probe_at = v_probe_at
	where l.workspace_id = p_limit.workspace_id and l.platform = p_limit.platform and l.rate_group = p_limit.rate_group;
end
$$;

create or replace function autopost.breaker_is_open(p_workspace_id text, p_platform text,
	p_rate_group text) returns boolean
language plpgsql stable
as $$
-- Purpose: true if the breaker of a rate group is open.
-- Reads:   platform_limits.
begin
	return exists (
		select 1 from autopost.platform_limits l
		where l.workspace_id = p_workspace_id and l.platform = p_platform and l.rate_group = p_rate_group
			and l.breaker_opened_at is not null);
end
$$;

create or replace function autopost.groups_are_failing(p_workspace_id text) returns boolean
language plpgsql stable
as $$
-- Purpose: true if a success may end an outage.
-- Reads:   platform_limits.
begin
	return exists (select 1 from autopost.platform_limits l where l.workspace_id = p_workspace_id
		and l.failing_channels <> '{}');
end
$$;

create or replace function autopost.judge_platforms(p_workspace_id text, p_items jsonb, p_answers jsonb) returns void
language plpgsql
as $$
-- Purpose: updates outages by the outcomes of settled calls. One success ends an outage. Failures
--          at the platform count per channel until the breaker opens. Other outcomes do not count:
--          many occur before the platform is called. The groups are locked.
-- Reads:   deliveries, channels.
-- Writes:  platform_limits, events (breaker).
declare
	v_group record;
begin
	for v_group in
		select c.platform, c.rate_group, bool_or(o.sent) as sent,
			array_agg(distinct d.channel_id) filter (where o.outage) as channels,
			array_agg(d.delivery_id) filter (where o.outage) as deliveries,
			(array_agg(o.error) filter (where o.outage))[1] as error
		from jsonb_array_elements(p_items) with ordinality i (item, n)
		cross join lateral (select autopost.normalised_error(i.item -> 'outcome' -> 'error') as error) e
		cross join lateral (
			select i.item -> 'outcome' -> 'ok' = 'true' as sent, i.item -> 'outcome' -> 'ok' = 'false'
				and autopost.is_outage(e.error) as outage, e.error) o
		cross join lateral (select d.delivery_id, d.channel_id from autopost.deliveries d
			where d.workspace_id = p_workspace_id and d.delivery_id = (i.item ->> 'delivery_id')::uuid limit 1) d
		cross join lateral (select c.platform, c.rate_group from autopost.channels c
			where c.workspace_id = p_workspace_id and c.channel_id = d.channel_id limit 1) c
		where p_answers -> (i.n - 1)::int -> 'applied' = 'true' and not p_answers -> (i.n - 1)::int ? 'repeated'
		and (o.sent or o.outage)
		group by c.platform, c.rate_group
		order by c.platform, c.rate_group
	loop
		if v_group.sent then
			perform autopost.end_outage(p_workspace_id, v_group.platform, v_group.rate_group);
		else
			perform autopost.count_outage(p_workspace_id, v_group.platform, v_group.rate_group, v_group.channels,
				v_group.deliveries, v_group.error);
		end if;
	end loop;
end
$$;

create or replace function autopost.end_outage(p_workspace_id text, p_platform text, p_rate_group text) returns void
language plpgsql
as $$
-- Purpose: clears the failing channels of a group after a success and closes its breaker.
-- Writes:  platform_limits, events (breaker).
declare
	v_before autopost.platform_limits;
	v_now timestamptz;
begin
	select l.* into v_before from autopost.platform_limits l
	where l.workspace_id = p_workspace_id and l.platform = p_platform and l.rate_group = p_rate_group
		and l.failing_channels <> '{}';
	if not found then
		return;
	end if;
	v_now := autopost.now_ts();
	update autopost.platform_limits l
	set failing_channels = '{}', breaker_opened_at = null, probe_id = null, probe_at = null, probes = 0,
		updated_at = v_now
	where l.workspace_id = p_workspace_id and l.platform = p_platform and l.rate_group = p_rate_group;
	if v_before.breaker_opened_at is not null then
		perform autopost.emit_note(p_workspace_id, 'breaker', 'ok', null, null, null,
			jsonb_build_object('state', 'closed', 'platform', p_platform,
			'rate_group', p_rate_group, 'opened_at', v_before.breaker_opened_at, 'probes', v_before.probes));
		perform pg_notify('autopost_wake', 'deliveries');
	end if;
end
$$;

create or replace function autopost.count_outage(
	p_workspace_id text, p_platform text, p_rate_group text, p_channels text[], p_deliveries uuid[], p_error jsonb
) returns void
language plpgsql
as $$
-- Purpose: records that calls of these channels failed at the platform. Enough channels open the
--          breaker. For an open one only its probe counts and delays the next.
-- Writes:  platform_limits, events (breaker).
declare
	v_limit autopost.platform_limits;
	v_now timestamptz := autopost.now_ts();
	v_probe_at timestamptz;
begin
	select l.* into v_limit from autopost.platform_limits l
	where l.workspace_id = p_workspace_id and l.platform = p_platform and l.rate_group = p_rate_group
	for no key update of l;
	v_probe_at := v_now + autopost.probe_pause(v_limit.probes);
	update autopost.platform_limits l
	set failing_channels = array(select distinct u.id from unnest(l.failing_channels || p_channels) u (id)
		order by u.id limit autopost.setting('breaker_channels')::int),
		probe_at = case when l.probe_id = any (p_deliveries) then v_probe_at else l.probe_at end
	where l.workspace_id = p_workspace_id and l.platform = p_platform and l.rate_group = p_rate_group
	returning l.* into v_limit;
	if v_limit.breaker_opened_at is null and cardinality(v_limit.failing_channels)
		>= autopost.setting('breaker_channels') then
		update autopost.platform_limits l
		set breaker_opened_at = v_now, probe_id = null, probes = 0, probe_at = v_now + autopost.probe_pause(0),
			updated_at = v_now
		where l.workspace_id = p_workspace_id and l.platform = p_platform and l.rate_group = p_rate_group;
		perform autopost.emit_note(p_workspace_id, 'breaker', 'error', null, null, p_error,
			jsonb_build_object('state', 'open', 'platform', p_platform,
			'rate_group', p_rate_group, 'channels', v_limit.failing_channels,
				'probe_at', v_now + autopost.probe_pause(0)));
	end if;
end
$$;
