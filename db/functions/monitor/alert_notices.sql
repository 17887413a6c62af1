create or replace function autopost.severity_rank(p_severity text) returns int
language sql immutable parallel safe
as $$
select array_position('{warning,error,critical}', p_severity)
$$;

create or replace function autopost.over_text(p_alert autopost.alerts) returns text
language sql immutable parallel safe
as $$
-- Purpose: an alert that has ended in words: its subject and title. Its description, such as "it is
--          paused until …", is no longer true.
select concat_ws(': ', nullif(regexp_replace(p_alert.subject, ':', ' '), p_alert.subject), coalesce((
	select k.title from autopost.alert_kinds() k where k.kind = p_alert.kind), p_alert.kind))
$$;

create or replace function autopost.alerts_to_send(p_target autopost.alert_targets, p_now timestamptz)
	returns setof jsonb
language plpgsql stable
as $$
-- Purpose: the alerts to report to a target now, worst first. Reported are open alerts that are new
--          to it, ten times larger than reported, or due for a reminder; and reported ones that
--          have ended. Alerts that ended or were acknowledged before a report are not new. A target
--          is not notified of its own failures.
-- Returns: {"alert_id", "told": raised | grown | reminder | resolved, …} each.
-- Reads:   alerts, alert_notices.
declare
	v_quiet boolean := autopost.is_quiet(p_target, p_now);
	v_remind interval := nullif(autopost.setting_interval('alert_remind_hours'), '0');
begin
	return query
	select jsonb_build_object('alert_id', a.alert_id, 'told', t.change, 'kind', a.kind, 'subject', a.subject,
		'severity', a.severity, 'what', case when t.change = 'resolved'
			then autopost.over_text(row(a.*)::autopost.alerts) else a.what end,
		'remedy', a.remedy,
		'amount', a.amount, 'raised_at', a.raised_at, 'ended_at', a.ended_at)
	from (
		select o.alert_id from autopost.alerts o where o.workspace_id = p_target.workspace_id and o.ended_at is null
		union
		select n.alert_id from autopost.alert_notices n where n.workspace_id = p_target.workspace_id
			and n.target_id = p_target.target_id and not n.resolved) k
	join autopost.alerts a on a.workspace_id = p_target.workspace_id and a.alert_id = k.alert_id
	left join autopost.alert_notices n on n.workspace_id = p_target.workspace_id and n.target_id = p_target.target_id
		and n.alert_id = a.alert_id
	cross join lateral (select case
		when a.ended_at is not null then case when n.alert_id is not null and not n.resolved then 'resolved' end
		when n.alert_id is null then case when a.acknowledged_at is null then 'raised' end
		when a.amount >= n.amount * 10 then 'grown'
		when a.acknowledged_at is null and n.told_at <= p_now - v_remind then 'reminder' end as change) t
	where t.change is not null
	and (t.change = 'resolved' or autopost.severity_rank(a.severity) >= autopost.severity_rank(p_target.min_severity)
		and a.kind = any (coalesce(p_target.kinds, array[a.kind])))
	and (not v_quiet or p_target.quiet_critical and a.severity = 'critical')
	and not (a.kind = 'alert_target_failing' and a.subject = 'target:' || p_target.target_id)
	order by t.change = 'resolved', autopost.severity_rank(a.severity) desc,
		array_position('{raised,grown,reminder}', t.change), a.raised_at, a.alert_id
	limit 1000;
end
$$;

create or replace function autopost.clock_of(p_at timestamptz, p_timezone text) returns text
language sql stable
as $$
select to_char(p_at at time zone p_timezone, 'YYYY-MM-DD HH24:MI ') || p_timezone
$$;

create or replace function autopost.notice_text(p_change jsonb, p_timezone text) returns text
language sql stable
as $$
-- Purpose: an alert as text.
select case p_change ->> 'told' when 'raised' then 'NEW' when 'grown' then 'MORE' when 'reminder' then 'STILL'
	else 'OVER' end
	|| format(' %s %s: %s', p_change ->> 'severity', p_change ->> 'kind', left(p_change ->> 'what', 400))
	|| e'\n  since ' || autopost.clock_of((p_change ->> 'raised_at')::timestamptz, p_timezone)
	|| coalesce(', over since ' || autopost.clock_of((p_change ->> 'ended_at')::timestamptz, p_timezone),
		e'\n  To do: ' || (p_change ->> 'remedy'))
$$;

create or replace function autopost.health_text(p_health jsonb, p_timezone text) returns text
language sql stable
as $$
-- Purpose: a health snapshot as text; null without one.
select case when p_health is not null then format(e'HEALTH at %s\n  queue: %s\n  oldest due: %s\n  paused channels: %s\n  open alerts: %s\n  credentials refused or expiring: %s\n  sources failing: %s\n  top errors: %s\n  last post: %s',
	autopost.clock_of((p_health ->> 'at')::timestamptz, p_timezone),
	coalesce((select string_agg(q.key || ' ' || q.value, ', ' order by q.key)
		from jsonb_each_text(p_health -> 'queue') q), 'empty'),
	coalesce(autopost.clock_of((p_health ->> 'oldest_due_at')::timestamptz, p_timezone), 'nothing'),
	p_health ->> 'paused_channels',
	coalesce((select string_agg(q.key || ' ' || q.value, ', ' order by q.key)
		from jsonb_each_text(p_health -> 'alerts') q), 'none'),
	coalesce((select string_agg(c.value ->> 'auth_ref', ', ') from jsonb_array_elements(p_health -> 'credentials') c),
		'none'),
	coalesce((select string_agg(s.value ->> 'source_id', ', ') from jsonb_array_elements(p_health -> 'sources') s),
		'none'),
	coalesce((select string_agg(format('%s (%s)', e.value ->> 'code', e.value ->> 'count'), ', ')
		from jsonb_array_elements(p_health -> 'top_errors') e), 'none'),
	coalesce(autopost.clock_of((p_health -> 'last_posts' -> 0 ->> 'created_at')::timestamptz, p_timezone), 'none')) end
$$;

create or replace function autopost.compose_message(p_target autopost.alert_targets, p_now timestamptz)
	returns autopost.alert_messages
language plpgsql stable
as $$
-- Purpose: the next message to a target; null if there is nothing to report or its limit of 24
--          hours is reached. One message covers all alerts, in full as far as they fit the shortest
--          message of any chat.
-- Reads:   alerts, alert_notices, alert_messages; as health_of.
declare
	v_shown int;
	v_text text;
	v_changes jsonb[];
	v_sent int;
	v_health jsonb;
	v_message autopost.alert_messages;
begin
	select count(*) into v_sent from autopost.alert_messages m
	where m.workspace_id = p_target.workspace_id and m.target_id = p_target.target_id
		and m.status in ('sent', 'unknown') and m.kind not in ('test', 'confirm')
	and m.ended_at > p_now - interval '24 hours';
	if v_sent >= p_target.daily_limit then
		return null;
	end if;
	v_changes := array(select t.* from autopost.alerts_to_send(p_target, p_now) t);
	if p_target.told_at > p_now - make_interval(mins => p_target.digest_minutes)
	and not exists (select 1 from unnest(v_changes) t (change)
		where t.change ->> 'severity' = 'critical' and t.change ->> 'told' <> 'resolved') then
		v_changes := '{}';
	end if;
	if p_target.health_next_at <= p_now and not autopost.is_quiet(p_target, p_now)
	or p_target.health_on_alert and exists (select 1 from unnest(v_changes) t (change)
		where t.change ->> 'told' = 'raised') then
		v_health := autopost.health_of(p_target.workspace_id);
	end if;
	if cardinality(v_changes) = 0 and v_health is null then
		return null;
	end if;
	select string_agg(t.said, e'\n\n' order by t.n), count(*) into v_text, v_shown
	from (
		select l.n, x.said, sum(length(x.said)) over (order by l.n) as upto
		from unnest(v_changes[1:10]) with ordinality l (change, n)
		cross join lateral (select autopost.notice_text(l.change, p_target.timezone) as said) x) t
	where t.n = 1 or t.upto <= 2500;
	v_message.workspace_id := p_target.workspace_id;
	v_message.target_id := p_target.target_id;
	v_message.message_id := autopost.new_id();
	v_message.kind := case when cardinality(v_changes) = 0 then 'health' else 'alerts' end;
	v_message.created_at := p_now;
	v_message.attempt := 0;
	v_message.subject :=
		left(format('[autopost %s] %s', p_target.workspace_id, case when cardinality(v_changes) = 0 then 'health'
		else split_part(autopost.notice_text(v_changes[1], p_target.timezone), e'\n', 1) || case
			when cardinality(v_changes) > 1 then format(' (and %s more)', cardinality(v_changes) - 1) else '' end end),
			200);
	v_message.text := left(concat_ws(e'\n\n', format('autopost, workspace %s', p_target.workspace_id), v_text,
		case when cardinality(v_changes) > v_shown then format('… and %s more: autopost alert list --workspace %s',
			cardinality(v_changes) - v_shown, p_target.workspace_id) end,
		case when v_sent = p_target.daily_limit - 1
			then format(
				'This is the last of %s messages in 24 hours. What comes now waits: autopost alert list --workspace %s',
			p_target.daily_limit, p_target.workspace_id) end,
		autopost.health_text(v_health, p_target.timezone)), 3900);
	v_message.body := jsonb_strip_nulls(jsonb_build_object('type', v_message.kind, 'workspace_id',
		p_target.workspace_id, 'message_id', v_message.message_id,
		'alerts', to_jsonb(v_changes[1:100]), 'more', nullif(greatest(cardinality(v_changes) - 100, 0), 0), 'health',
			v_health));
	v_message.tells := (
		select coalesce(jsonb_agg(jsonb_build_object('alert_id', t.change -> 'alert_id', 'told', t.change -> 'told',
		'amount', t.change -> 'amount')), '[]') from unnest(v_changes) t (change));
	return v_message;
end
$$;

create or replace function autopost.end_message(p_message autopost.alert_messages, p_status text, p_error jsonb)
	returns void
language plpgsql
as $$
-- Purpose: ends a message to a target. A sent message, and one with an unknown outcome, counts as
--          reported. After a failure the next message reports the alerts as they are then.
-- Writes:  alert_messages, alert_notices, alerts, alert_targets.
declare
	v_now timestamptz := autopost.now_ts();
	v_health_next_at timestamptz;
begin
	update autopost.alert_messages m
	set status = p_status, ended_at = v_now, claim_token = null, lease_until = null, error = case
		when p_status <> 'sent' then autopost.normalised_error(p_error) end
	where m.workspace_id = p_message.workspace_id and m.message_id = p_message.message_id;
	if p_status = 'failed' then
		return;
	end if;
	insert into autopost.alert_notices as n (workspace_id, target_id, alert_id, told_at, amount, resolved)
	select p_message.workspace_id, p_message.target_id, t.alert_id, v_now, t.amount, t.told = 'resolved'
	from jsonb_to_recordset(p_message.tells) t (alert_id uuid, told text, amount numeric)
	join autopost.alerts a on a.workspace_id = p_message.workspace_id and a.alert_id = t.alert_id
	on conflict (workspace_id, target_id, alert_id) do update set told_at = excluded.told_at, amount = excluded.amount,
		resolved = excluded.resolved;
	update autopost.alerts a set last_notified_at = v_now
	from (
		select x.alert_id from autopost.alerts x
		where x.workspace_id = p_message.workspace_id and x.alert_id in (select (t.value ->> 'alert_id')::uuid
			from jsonb_array_elements(p_message.tells) t)
		order by x.kind, x.subject for no key update of x) l
	where a.workspace_id = p_message.workspace_id and a.alert_id = l.alert_id;
	select case when p_message.body ? 'health' then autopost.next_health(t.health_at, t.timezone, v_now)
		else t.health_next_at end into v_health_next_at
	from autopost.alert_targets t
	where t.workspace_id = p_message.workspace_id and t.target_id = p_message.target_id
	for no key update of t;
	update autopost.alert_targets t
	set told_at = v_now, health_next_at = v_health_next_at
	where t.workspace_id = p_message.workspace_id and t.target_id = p_message.target_id;
end
$$;
