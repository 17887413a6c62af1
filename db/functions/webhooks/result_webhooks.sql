-- Result webhooks: their configuration, and one independent queue for each.

create or replace function autopost.webhook_rules() returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: the rules for the fields of a result webhook.
select '{
	"url": {"is": "text", "required": true, "remedy": "write an https address, as in https://example.com/hooks/results"},
	"signing_ref": {"is": "text", "required": true, "remedy": "write the auth_ref of a credential of platform webhook"},
	"event_types": {"is": "list", "default": ["*"], "remedy": "write names, families or all, as in [\"delivery.sent\", \"post.*\"] or [\"*\"]"},
	"channel_ids": {"is": "list", "default": []},
	"tags": {"is": "list", "default": []},
	"enabled": {"is": "boolean", "default": true},
	"rps": {"is": "number", "default": 20, "min": 0.001, "max": 1000},
	"max_parallel": {"is": "integer", "default": 4, "min": 1, "max": 100},
	"timeout_seconds": {"is": "integer", "default": 15, "min": 1, "max": 60}}'::jsonb
$$;

create or replace function autopost.webhook_errors(p_workspace_id text, p_before jsonb, p_after jsonb) returns jsonb
language plpgsql stable
as $$
-- Purpose: the errors in the fields of a result webhook: [{field, reason, remedy}]. Unchanged
--          fields are not checked again.
-- Reads:   platforms, channels.
declare
	v_type text;
	v_channel text;
begin
	select t.name into v_type from jsonb_array_elements_text(p_after -> 'event_types') t (name)
	where p_after -> 'event_types' is distinct from p_before -> 'event_types'
	and not exists (select 1 from unnest(autopost.result_types()) k (name)
		where autopost.is_type_wanted(k.name, array[t.name]))
	limit 1;
	select i.id into v_channel from jsonb_array_elements_text(p_after -> 'channel_ids') i (id)
	where p_after -> 'channel_ids' is distinct from p_before -> 'channel_ids'
	and not exists (select 1 from autopost.channels c where c.workspace_id = p_workspace_id and c.channel_id = i.id)
	limit 1;
	return case when p_after -> 'url' is distinct from p_before -> 'url'
			and not exists (select 1 from autopost.platforms p
				where p.platform = 'webhook' and p_after ->> 'url' ~ p.target_form)
		then autopost.field_error('url', 'must be an address that can be called',
			autopost.webhook_rules() -> 'url' ->> 'remedy') else '[]' end
	|| case when v_type is not null then autopost.field_error('event_types', format('%s is unknown', v_type),
		'use * or some of ' || array_to_string(autopost.result_types(), ', ')) else '[]' end
	|| case when p_after -> 'event_types' = '[]' then autopost.field_error('event_types', 'name nothing',
		'use ["*"] for all, or disable it') else '[]' end
	|| case when v_channel is not null then autopost.field_error('channel_ids',
		format('must be channels of the workspace, got %s', v_channel), 'add the channel first') else '[]' end;
end
$$;

create or replace function autopost.mark_time() returns timestamptz
language sql volatile
as $$
-- Purpose: a time before this transaction gets its id. A transaction with a later id writes at a
--          later time.
select least(autopost.now_ts(), transaction_timestamp())
$$;

create or replace function autopost.start_cursor(p_workspace_id text) returns void
language plpgsql
as $$
-- Purpose: starts reading the events of a workspace now, unless that has started.
-- Writes:  webhook_cursors.
declare
	v_from timestamptz := autopost.now_ts() - autopost.setting_interval('webhook_overlap_seconds');
begin
	insert into autopost.webhook_cursors (workspace_id, done_at, mark_xid, mark_at, read_at, next_done_at)
	select p_workspace_id, v_from, pg_current_xact_id(), autopost.mark_time(), v_from, v_from
	-- never waits for a reader
	where not exists (select 1 from autopost.webhook_cursors c where c.workspace_id = p_workspace_id)
	on conflict (workspace_id) do nothing;
end
$$;

create or replace function autopost.begin_reading(p_cursor autopost.webhook_cursors) returns autopost.webhook_cursors
language plpgsql
as $$
-- Purpose: sets the position for the next read of the events. When every transaction up to the mark
--          has ended, their events can be read: from done_at to the end, and everything before the
--          mark is done. Until then the latest events are read again, so that a slow transaction
--          delays no other. The mark is a transaction of our own, not the end of a snapshot,
--          because others may already write above that. A mark in the future comes from another
--          server (a restored copy) and is ignored. Events from before the oldest webhook are
--          skipped.
-- Reads:   result_webhooks.
declare
	v_cursor autopost.webhook_cursors := p_cursor;
	v_now timestamptz := autopost.now_ts();
	v_overlap interval := autopost.setting_interval('webhook_overlap_seconds');
	v_snapshot pg_snapshot := pg_current_snapshot();
	v_oldest timestamptz := (
		select min(w.enabled_at) from autopost.result_webhooks w
			where w.workspace_id = p_cursor.workspace_id and w.enabled);
begin
	v_cursor.position_at := p_cursor.done_at;
	v_cursor.next_done_at := p_cursor.done_at;
	if pg_snapshot_xmin(v_snapshot) > p_cursor.mark_xid or p_cursor.mark_xid >= pg_snapshot_xmax(v_snapshot) then
		if p_cursor.mark_xid < pg_snapshot_xmax(v_snapshot) then
			v_cursor.next_done_at := greatest(p_cursor.mark_at - v_overlap, p_cursor.done_at);
		end if;
		v_cursor.mark_xid := pg_current_xact_id();
		v_cursor.mark_at := autopost.mark_time();
	else
		v_cursor.position_at := p_cursor.read_at - v_overlap;
	end if;
	v_cursor.position_at := greatest(v_cursor.position_at, v_oldest);
	v_cursor.position_id := '00000000-0000-0000-0000-000000000000';
	v_cursor.read_at := v_now;
	return v_cursor;
end
$$;

create or replace function autopost.listeners(p_workspace_id text, p_webhook_id text, p_types text[])
returns table (event_type text, webhook_id text, since timestamptz, channel_ids text[], tags text[])
language plpgsql stable
as $$
-- Purpose: the webhooks that get events of these types. p_webhook_id null: all enabled ones, each
--          from the time it was enabled; otherwise this one, from any time. The filter of channels
--          does not apply to events without a channel. Each list of wanted types is compared once,
--          however many webhooks have it.
-- Reads:   result_webhooks.
begin
	return query
	with enabled as materialized (
		select w.webhook_id, w.enabled_at, w.event_types, w.channel_ids, w.tags from autopost.result_webhooks w
		where w.workspace_id = p_workspace_id and w.enabled and w.webhook_id = coalesce(p_webhook_id, w.webhook_id)
	), wanted as materialized (
		select l.event_types, t.name from (select distinct e.event_types from enabled e) l
		join unnest(p_types) t (name) on autopost.is_type_wanted(t.name, l.event_types)
	)
	select t.name, e.webhook_id, case when p_webhook_id is null then e.enabled_at else '-infinity' end, e.channel_ids,
		case when e.tags = '{}' then e.tags else autopost.canonical_tags(e.tags) end
	from enabled e
	join wanted t on t.event_types = e.event_types;
end
$$;

create or replace function autopost.queue_results(p_workspace_id text, p_webhook_id text, p_events autopost.events[])
	returns int
language plpgsql
as $$
-- Purpose: queues these events for their webhooks. Queued ones are skipped before their bodies are
--          made. All webhooks of an event share its body.
-- Returns: the number of queued calls.
-- Reads:   result_webhooks, channels; as completed_posts.
-- Writes:  webhook_sends.
declare
	v_now timestamptz := autopost.now_ts();
	v_types text[] := array(select distinct autopost.result_type(e) from unnest(p_events) e);
	v_completers text[] := array(
		select l.webhook_id from autopost.listeners(p_workspace_id, p_webhook_id, '{post.completed}') l);
	v_queued int;
	v_completed int;
begin
	with wanted as materialized (
		select e.ts, e.id, array_agg(l.webhook_id) as webhook_ids
		from unnest(p_events) e
		left join lateral (
			select c.tags from autopost.channels c
			where c.workspace_id = p_workspace_id and c.channel_id = e.channel_id limit 1) c on true
		join autopost.listeners(p_workspace_id, p_webhook_id, v_types) l on l.event_type = autopost.result_type(e)
			and l.since <= e.ts
		where (e.channel_id is null or (
			(l.channel_ids = '{}' or e.channel_id = any (l.channel_ids)) and (l.tags = '{}' or c.tags && l.tags)))
		and not exists (
			select 1 from autopost.webhook_sends s
			where s.workspace_id = p_workspace_id and s.webhook_id = l.webhook_id and s.event_at = e.ts
				and s.event_id = e.id offset 0)
		group by e.ts, e.id
	), bodies as materialized (
		select w.ts, w.id, w.webhook_ids, autopost.result_type(e) as event_type,
			autopost.result_body(autopost.result_type(e), e.ts,
				autopost.result_data(e, autopost.result_type(e), c.channel)) as body
		from wanted w
		join unnest(p_events) e on e.ts = w.ts and e.id = w.id
		left join lateral (
			select row(c.*)::autopost.channels from autopost.channels c
			where c.workspace_id = p_workspace_id and c.channel_id = e.channel_id limit 1) c (channel) on true
	)
	insert into autopost.webhook_sends -- citus: ok, only a concurrent call of the same events makes the count too high
		(workspace_id, webhook_id, event_id, event_type, event_at, body, due_at,
		created_at)
	select p_workspace_id, h.webhook_id, b.id, b.event_type, b.ts, b.body, v_now, v_now
	from bodies b
	cross join lateral unnest(b.webhook_ids) h (webhook_id)
	order by b.ts, b.id, h.webhook_id
	on conflict (workspace_id, webhook_id, event_id) do nothing;
	get diagnostics v_queued = row_count;
	if v_completers = '{}' then
		return v_queued;
	end if;
	insert into autopost.webhook_sends -- citus: ok, only a concurrent call of the same events makes the count too high
		(workspace_id, webhook_id, event_id, event_type, event_at, body, due_at,
		created_at)
	select p_workspace_id, l.webhook_id, p.event_id, l.event_type, p.finished_at, p.body, v_now, v_now
	from autopost.completed_posts(p_workspace_id, p_events, v_completers) p
	join autopost.listeners(p_workspace_id, p_webhook_id, '{post.completed}') l on l.since <= p.finished_at
	where not exists (
		select 1 from autopost.webhook_sends s
		where s.workspace_id = p_workspace_id and s.webhook_id = l.webhook_id and s.event_id = p.event_id)
	order by p.finished_at, p.event_id, l.webhook_id
	on conflict (workspace_id, webhook_id, event_id) do nothing;
	get diagnostics v_completed = row_count;
	return v_queued + v_completed;
end
$$;

create or replace function autopost.calls_allowed(p_webhook autopost.result_webhooks, p_now timestamptz) returns int
language plpgsql stable
as $$
-- Purpose: the number of calls that a locked webhook may start now: within its free capacity, which
--          is one for a failing webhook, and its rate with a burst of one second.
-- Reads:   webhook_sends.
declare
	v_places int := case when p_webhook.failing_since is null then p_webhook.max_parallel else 1 end;
begin
	return least(
		v_places - (select count(*) from autopost.webhook_sends s
			where s.workspace_id = p_webhook.workspace_id and s.webhook_id = p_webhook.webhook_id
				and s.status = 'sending' and s.due_at > p_now),
		case when p_webhook.next_send_at <= p_now then greatest(1, floor(p_webhook.rps))
			else greatest(0,
				floor(extract(epoch from p_now + interval '1 second' - p_webhook.next_send_at) * p_webhook.rps)) end);
end
$$;

create or replace function autopost.take_calls(p_workspace_id text, p_webhook_ids text[], p_event_ids uuid[],
	p_now timestamptz)
returns table (webhook_id text, event_at timestamptz, event_id uuid, claim_token text, body text)
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
	set enable_mergejoin = off
as $$
-- Purpose: leases these locked calls, read by their key one by one.
-- Reads:   result_webhooks.
-- Writes:  webhook_sends.
declare
	v_leases jsonb := (
		select jsonb_object_agg(w.webhook_id, w.timeout_seconds + 15) from autopost.result_webhooks w
		where w.workspace_id = p_workspace_id);
	v_tokens text[] := array(select autopost.new_id()::text from unnest(p_event_ids));
begin
	return query
	update autopost.webhook_sends s
	set status = 'sending', attempt = s.attempt + 1, claim_token = k.token, attempted_at = p_now,
		due_at = autopost.later(p_now, make_interval(secs => (v_leases -> s.webhook_id)::int))
	from unnest(p_webhook_ids, p_event_ids, v_tokens) k (webhook_id, event_id, token)
	where s.workspace_id = p_workspace_id and s.webhook_id = k.webhook_id and s.event_id = k.event_id
	returning s.webhook_id, s.event_at, s.event_id, s.claim_token, s.body;
end
$$;

create or replace function autopost.finish_calls(p_workspace_id text, p_webhook_ids text[], p_event_ids uuid[],
	p_https int[], p_now timestamptz) returns void
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
	set enable_mergejoin = off
as $$
-- Purpose: records these locked calls as delivered, each with its HTTP status. The rows are read as by take_calls.
-- Writes:  webhook_sends.
begin
	update autopost.webhook_sends s
	set status = 'delivered', claim_token = null, http_status = k.http, error = null, finished_at = p_now
	from unnest(p_webhook_ids, p_event_ids, p_https) k (webhook_id, event_id, http)
	where s.workspace_id = p_workspace_id and s.webhook_id = k.webhook_id and s.event_id = k.event_id;
end
$$;

create or replace function autopost.webhooks_do_well(p_workspace_id text, p_webhook_ids text[]) returns void
language plpgsql
as $$
-- Purpose: records a successful call of each of these locked webhooks.
-- Writes:  result_webhooks.
begin
	update autopost.result_webhooks w set failing_since = null
	where w.workspace_id = p_workspace_id and w.webhook_id = any (p_webhook_ids) and w.failing_since is not null;
end
$$;

create or replace function autopost.disable_webhook(p_workspace_id text, p_webhook_id text, p_reason text, p_error text)
	returns void
language plpgsql
as $$
-- Purpose: disables a locked webhook on behalf of the engine. Its waiting calls stay and are sent
--          after it is enabled again.
-- Writes:  result_webhooks, alerts, admin_audit_log.
declare
	v_now timestamptz := autopost.now_ts();
begin
	update autopost.result_webhooks w set enabled = false, disabled_reason = p_reason, updated_at = v_now
	where w.workspace_id = p_workspace_id and w.webhook_id = p_webhook_id;
	perform autopost.raise_alert(p_workspace_id, 'webhook_disabled', 'webhook:' || p_webhook_id,
		jsonb_build_object('code', 'webhook_' || p_reason, 'message', p_error),
			jsonb_build_object('webhook_id', p_webhook_id));
	perform autopost.audit(p_workspace_id, 'disable_webhook', 'webhook:' || p_webhook_id,
		jsonb_build_object('operator', 'autopost', 'reason', case p_reason
			when 'gone' then 'its address answered 410 Gone' else 'all its calls failed for too long' end),
		'{"enabled": true}', '{"enabled": false}');
end
$$;

create or replace function autopost.replay(
	p_workspace_id text, p_webhook_id text, p_ids uuid[], p_when tstzrange, p_failed_only boolean, p_dry_run boolean
) returns jsonb
language plpgsql
as $$
-- Purpose: queues calls of a webhook again, by event ids or by time; by time also events that were
--          never queued. A dry run is rolled back at once.
-- Returns: {"queued", "next_since", "unknown"}.
-- Locks:   webhook_sends (event_id).
-- Reads:   events.
-- Writes:  webhook_sends.
declare
	v_now timestamptz := autopost.now_ts();
	v_events autopost.events[] := '{}';
	v_next timestamptz;
	v_again uuid[];
	v_queued int := 0;
begin
	if p_ids is null and not p_failed_only then
		v_events := array(
			select row(e.*)::autopost.events from autopost.events e
			where e.workspace_id = p_workspace_id and e.ts >= lower(p_when) and e.ts < upper(p_when)
			order by e.ts, e.id
			limit 5000);
		if cardinality(v_events) = 5000 and v_events[1].ts < v_events[5000].ts then
			v_next := v_events[5000].ts;
			v_events := array(select e from unnest(v_events) e where e.ts < v_next);
		end if;
		v_queued := autopost.queue_results(p_workspace_id, p_webhook_id, v_events);
	end if;
	v_again := array(
		select s.event_id from autopost.webhook_sends s
		where s.workspace_id = p_workspace_id and s.webhook_id = p_webhook_id
		and (s.status = 'dead' or (s.status = 'pending' and s.attempt > 0)
			or (s.status = 'delivered' and not p_failed_only))
		and case when p_ids is not null then s.event_id = any (p_ids) else s.event_at >= lower(p_when)
			and s.event_at < coalesce(v_next, upper(p_when)) end
		order by s.event_id
		for no key update of s);
	update autopost.webhook_sends s
	set status = 'pending', attempt = 0, due_at = v_now, created_at = v_now, finished_at = null
	where s.workspace_id = p_workspace_id and s.webhook_id = p_webhook_id and s.event_id = any (v_again);
	v_queued := v_queued + cardinality(v_again);
	if p_dry_run then
		raise exception 'planned' using errcode = 'AP900';
	end if;
	return autopost.replayed(p_workspace_id, p_webhook_id, p_ids, v_queued, v_next);
exception when sqlstate 'AP900' then
	-- the exception rolled the rows back
	return autopost.replayed(p_workspace_id, p_webhook_id, p_ids, v_queued, v_next);
end
$$;

create or replace function autopost.replayed(p_workspace_id text, p_webhook_id text, p_ids uuid[], p_queued int,
	p_next timestamptz) returns jsonb
language plpgsql stable
as $$
-- Purpose: the answer of a replay.
-- Reads:   webhook_sends.
begin
	return jsonb_build_object('queued', p_queued, 'next_since', autopost.utc(p_next), 'unknown', array(
		select u.id from unnest(p_ids) u (id)
		where not exists (
			select 1 from autopost.webhook_sends s
			where s.workspace_id = p_workspace_id and s.webhook_id = p_webhook_id and s.event_id = u.id)));
end
$$;
