create or replace function autopost.next_position(p_position jsonb) returns jsonb
language plpgsql
as $$
-- Purpose: the position of the next read of a stream. Transactions do not commit in the order of
--          their times: when every transaction before the mark has ended, all up to the mark is read
--          once more, and done_at moves there. Until then the read begins at the read before it.
--          Times that a transaction reads before its first write are at most two seconds older.
--          p_position null, of another server, or of a clock that was turned back: the present.
-- Returns: {"from": read what is newer, "done_at": everything before is complete, "read_at", "mark_at",
--          "mark_xid", "new": true for the present}.
declare
	v_overlap constant interval := '2 seconds';
	v_now constant timestamptz := autopost.now_ts(); -- before the snapshot
	v_snapshot pg_snapshot;
	v_mark constant xid8 := (p_position ->> 'mark_xid')::xid8;
	v_mark_at constant timestamptz := (p_position ->> 'mark_at')::timestamptz;
	v_read_at constant timestamptz := (p_position ->> 'read_at')::timestamptz;
	v_done constant timestamptz := (p_position ->> 'done_at')::timestamptz;
begin
	v_snapshot := pg_current_snapshot();
	if pg_snapshot_xmin(v_snapshot) < v_mark and v_mark <= pg_snapshot_xmax(v_snapshot) and v_read_at <= v_now then
		return p_position || jsonb_build_object('from', greatest(v_read_at - v_overlap, v_done), 'read_at', v_now);
	elsif v_mark <= pg_snapshot_xmax(v_snapshot) and v_read_at <= v_now then
		return jsonb_build_object('from', v_done, 'done_at', greatest(v_mark_at - v_overlap, v_done), 'read_at', v_now,
			'mark_at', v_now, 'mark_xid', pg_snapshot_xmax(v_snapshot)::text);
	end if;
	return jsonb_build_object('from', v_now - v_overlap, 'done_at', v_now - v_overlap, 'read_at', v_now,
		'mark_at', v_now, 'mark_xid', pg_snapshot_xmax(v_snapshot)::text, 'new', true);
end
$$;

create or replace function autopost.event_items(p_workspace_id text, p_events autopost.events[])
	returns table (item jsonb)
language plpgsql stable
as $$
-- Purpose: the deliveries of some events, each with its present state and last event, and the posts
--          that got deliveries.
-- Reads:   deliveries.
begin
	return query
	select jsonb_build_object('kind', 'delivery', 'id', d.delivery_id, 'at', l.ts, 'data', jsonb_build_object(
		'delivery_id', d.delivery_id, 'message_id', d.message_id, 'channel_id', d.channel_id, 'status', d.status,
		'attempt', d.attempt, 'action', l.action))
	from (select distinct on (e.delivery_id) e.delivery_id, e.ts, e.action
		from unnest(p_events) e
		where e.delivery_id is not null
		order by e.delivery_id, e.ts desc, e.id desc) l
	join autopost.deliveries d on d.workspace_id = p_workspace_id and d.delivery_id = l.delivery_id
	union all
	select jsonb_build_object('kind', 'post', 'id', e.id, 'at', e.ts, 'data',
		jsonb_build_object('message_id', e.message_id,
		'enqueued', e.meta -> 'enqueued', 'deduped', e.meta -> 'deduped', 'invalid', e.meta -> 'invalid'))
	from unnest(p_events) e
	where e.action = 'enqueue' and e.delivery_id is null;
end
$$;

create or replace function autopost.submission_items(p_workspace_id text, p_from timestamptz, p_most int)
	returns table (item jsonb)
language plpgsql stable
as $$
-- Purpose: the submissions that changed after an instant, at most p_most, the oldest change first.
-- Reads:   submissions.
begin
	return query
	select jsonb_build_object('kind', 'submission', 'id', s.submission_id, 'at', s.updated_at, 'data',
		jsonb_build_object(
		'submission_id', s.submission_id, 'kind', s.kind, 'status', s.status, 'message_id', s.message_id, 'decision',
		s.decision, 'decided_by', s.decided_by, 'event_type', s.event_type))
	from autopost.submissions s
	where s.workspace_id = p_workspace_id and s.updated_at > p_from
	order by s.updated_at
	limit p_most;
end
$$;

create or replace function autopost.alert_items(p_workspace_id text, p_from timestamptz, p_most int)
	returns table (item jsonb)
language plpgsql stable
as $$
-- Purpose: the alerts that were raised, acknowledged or ended after an instant, at most p_most.
-- Reads:   alerts.
begin
	return query
	select jsonb_build_object('kind', 'alert', 'id', a.alert_id, 'at',
		greatest(a.raised_at, a.acknowledged_at, a.ended_at),
		'data', jsonb_build_object('alert_id', a.alert_id, 'kind', a.kind, 'subject', a.subject, 'severity', a.severity,
		'what', a.what, 'state', case when a.ended_at is not null then 'ended' when a.acknowledged_at is not null
			then 'acknowledged' else 'open' end))
	from autopost.alerts a
	where a.workspace_id = p_workspace_id and a.ended_at is null and greatest(a.raised_at, a.acknowledged_at) > p_from
	union all
	select jsonb_build_object('kind', 'alert', 'id', a.alert_id, 'at', a.ended_at, 'data',
		jsonb_build_object('alert_id',
		a.alert_id, 'kind', a.kind, 'subject', a.subject, 'severity', a.severity, 'what', a.what, 'state', 'ended'))
	from autopost.alerts a
	where a.workspace_id = p_workspace_id and a.ended_at > p_from
	limit p_most;
end
$$;

create or replace function autopost.change_items(p_workspace_id text, p_from timestamptz, p_most int)
	returns table (item jsonb)
language plpgsql stable
as $$
-- Purpose: operator actions after an instant, at most p_most, the oldest first.
-- Reads:   admin_audit_log.
begin
	return query
	select jsonb_build_object('kind', 'change', 'id', a.id, 'at', a.ts, 'data', jsonb_build_object('action', a.action,
		'subject', a.subject))
	from autopost.admin_audit_log a
	where a.workspace_id = p_workspace_id and a.id >= autopost.first_id_at(p_from) and a.ts > p_from
	order by a.id
	limit p_most;
end
$$;

create or replace function autopost.ended_readers(p_watched jsonb) returns jsonb
language plpgsql stable
as $$
-- Purpose: ids of watched keys and sessions that are not valid any more.
-- Reads:   api_keys, sessions, users, memberships, settings.
declare
	v_now timestamptz := autopost.now_ts();
	v_seen_after timestamptz := v_now - autopost.setting_interval('session_idle_minutes');
	v_created_after timestamptz := v_now - autopost.setting_interval('session_max_hours');
	v_watched record;
	v_ended text[] := '{}';
begin
	for v_watched in
		select w.value ->> 'workspace_id' as workspace_id,
			array_agg((w.value ->> 'key_id')::uuid) filter (where w.value ->> 'key_id' is not null) as keys,
			array_agg((w.value ->> 'session_id')::uuid) filter (where w.value ->> 'session_id' is not null) as sessions
		from jsonb_array_elements(p_watched) w
		group by 1
	loop
		v_ended := v_ended || array(
			select i.id::text from unnest(v_watched.keys) i (id)
			where not exists (select 1 from autopost.api_keys k
				where k.workspace_id = v_watched.workspace_id and k.key_id = i.id and k.enabled
				and (k.expires_at is null or k.expires_at > v_now)));
		v_ended := v_ended || array(
			select i.id::text from unnest(v_watched.sessions) i (id)
			where not exists (select 1 from autopost.sessions s
				join autopost.users u on u.user_id = s.user_id and u.enabled
				join autopost.memberships m on m.user_id = s.user_id and m.workspace_id = v_watched.workspace_id
				where s.session_id = i.id and s.expires_at > v_now and s.last_seen_at > v_seen_after
				and s.created_at > v_created_after));
	end loop;
	return (select coalesce(jsonb_agg(distinct e.id), '[]') from unnest(v_ended) e (id));
end
$$;

create or replace function autopost.events_since(p_workspace_id text, p_from timestamptz, p_most int)
	returns autopost.events[]
language plpgsql stable
as $$
-- Purpose: the events after an instant, at most p_most, the oldest first.
-- Reads:   events.
begin
	return array(select row(e.*)::autopost.events from autopost.events e
		where e.workspace_id = p_workspace_id and e.ts > p_from
		order by e.ts, e.id limit p_most);
end
$$;

create or replace function autopost.stream_items(p_watched jsonb, p_position jsonb) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp set enable_seqscan = off
	set enable_bitmapscan = off
as $$
-- Purpose: what changed since a position, for all open streams of a daemon in one call. p_watched:
--          [{"workspace_id", "key_id", "session_id"}], one per stream; both ids may be missing.
--          p_position: "position" of the call before; null begins now. Nothing is missed, even if
--          its transaction commits late; items near the position are returned again. Works across
--          workspaces. Only the engine may call it.
-- Returns: {"position", "done_at": items up to it are not returned again, "items":
--          [{"workspace_id", "kind": submission, delivery, post, alert or change, "id", "at", "data"}], "lost":
--          workspaces with too many changes for one call, or all if the position is not of this server
--          or time, whose items are left out, "ended": as ended_readers}.
-- Raises:  AP001 for a wrong argument.
-- Reads:   events, deliveries, submissions, alerts, admin_audit_log; as ended_readers.
declare
	v_most constant int := 1000; -- per kind and workspace
	v_position jsonb;
	v_workspace_id text;
	v_from timestamptz;
	v_events autopost.events[];
	v_items jsonb[];
	v_all jsonb := '[]';
	v_lost text[] := '{}';
begin
	perform autopost.enter_all_workspaces();
	perform autopost.require_argument('watched', jsonb_typeof(p_watched) = 'array'),
		autopost.require_argument('position', coalesce(jsonb_typeof(p_position), 'object') = 'object');
	v_position := autopost.next_position(p_position);
	v_from := v_position ->> 'from';
	for v_workspace_id in
		select distinct w.value ->> 'workspace_id' from jsonb_array_elements(p_watched) w order by 1
	loop
		continue when not autopost.may_access(v_workspace_id);
		v_events := autopost.events_since(v_workspace_id, v_from, v_most + 1);
		v_items := array(select i.item from autopost.submission_items(v_workspace_id, v_from, v_most + 1) i);
		if greatest(cardinality(v_events), cardinality(v_items)) > v_most
			or (v_position ? 'new' and p_position is not null) then
			v_lost := v_lost || v_workspace_id;
		else
			v_all := v_all || coalesce((select jsonb_agg(i || jsonb_build_object('workspace_id', v_workspace_id)
				order by (i ->> 'at')::timestamptz) from (
				select unnest(v_items) as i union all
				select e.item from autopost.event_items(v_workspace_id, v_events) e union all
				select a.item from autopost.alert_items(v_workspace_id, v_from, v_most) a union all
				select c.item from autopost.change_items(v_workspace_id, v_from, v_most) c) x), '[]');
		end if;
	end loop;
	return jsonb_build_object('position', v_position - 'new', 'done_at', v_position -> 'done_at', 'items', v_all,
		'lost', to_jsonb(v_lost), 'ended', autopost.ended_readers(p_watched));
end
$$;
