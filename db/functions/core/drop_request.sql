create or replace function autopost.close_flood(p_flood autopost.ingress_floods) returns void
language plpgsql
as $$
-- Purpose: ends the shared run of a drop counter and writes its one event. The caller locks the
--          row.
-- Writes:  ingest_runs, ingress_floods, events.
declare
	v_stats jsonb;
	v_now timestamptz := autopost.now_ts();
begin
	update autopost.ingest_runs r set finished_at = v_now
	where r.workspace_id = p_flood.workspace_id and r.run_id = p_flood.run_id
	returning r.stats_json into v_stats;
	update autopost.ingress_floods f set run_id = null, opened_at = null, meta = null
	where f.workspace_id = p_flood.workspace_id and f.endpoint_id = p_flood.endpoint_id and f.action = p_flood.action;
	perform autopost.emit_note(p_flood.workspace_id, p_flood.action,
		case when p_flood.action = 'ingress_dedup_dropped' then 'ok' else 'error' end, null, null, null,
		p_flood.meta || jsonb_build_object('endpoint_id', p_flood.endpoint_id, 'run_id', p_flood.run_id,
			'requests', v_stats -> 'requests',
			'items', v_stats -> autopost.drop_counter(p_flood.action), 'since', p_flood.opened_at, 'until', v_now));
end
$$;

create or replace function autopost.drop_counter(p_action text) returns text
language sql immutable parallel safe
as $$
-- Purpose: the counter of a run for the event of a drop.
select replace(p_action, 'ingress_', '')
$$;

create or replace function autopost.join_flood(p_workspace_id text, p_endpoint_id text, p_action text, p_counts jsonb,
	p_meta jsonb) returns uuid
language plpgsql
as $$
-- Purpose: counts a rejected request. Above ingress_drops_per_second it joins the shared run, which
--          adds its p_counts: {counter: items}.
-- Returns: the shared run, or null if the request gets a run and an event of its own.
-- Locks:   ingress_floods, ingest_runs, after all other locks.
-- Writes:  ingress_floods; for a joined request also ingest_runs and events.
declare
	v_flood autopost.ingress_floods;
	v_now timestamptz;
begin
	insert into autopost.ingress_floods (workspace_id, endpoint_id, action)
	select p_workspace_id, p_endpoint_id, p_action
	where not exists (
		select 1 from autopost.ingress_floods f
		where f.workspace_id = p_workspace_id and f.endpoint_id = p_endpoint_id and f.action = p_action)
	on conflict do nothing;
	select f.* into v_flood from autopost.ingress_floods f
	where f.workspace_id = p_workspace_id and f.endpoint_id = p_endpoint_id and f.action = p_action
	for no key update of f;
	v_now := autopost.now_ts();
	if v_flood.opened_at <= v_now - autopost.drop_window() then
		perform autopost.close_flood(v_flood);
		v_flood.run_id := null;
	end if;
	if v_flood.run_id is null then
		if date_trunc('second', v_now) <> v_flood.second then
			v_flood.recorded := 0;
		end if;
		if v_flood.recorded < autopost.setting('ingress_drops_per_second') then
			update autopost.ingress_floods f set second = date_trunc('second', v_now), recorded = v_flood.recorded + 1
			where f.workspace_id = p_workspace_id and f.endpoint_id = p_endpoint_id and f.action = p_action;
			return null;
		end if;
		v_flood.run_id := autopost.open_run(p_workspace_id, 'push', p_endpoint_id, null);
		update autopost.ingress_floods f set run_id = v_flood.run_id, opened_at = v_now, meta = p_meta
		where f.workspace_id = p_workspace_id and f.endpoint_id = p_endpoint_id and f.action = p_action;
	end if;
	update autopost.ingest_runs r
	set stats_json = (
		select jsonb_object_agg(k.key, k.total)
		from (
			select c.key, sum(c.value::bigint) as total
			from (select * from jsonb_each_text(r.stats_json) union all select *
				from jsonb_each_text(p_counts || '{"requests": 1}')) c
			group by c.key
			having sum(c.value::bigint) > 0) k)
	where r.workspace_id = p_workspace_id and r.run_id = v_flood.run_id;
	return v_flood.run_id;
end
$$;

create or replace function autopost.drop_request(p_workspace_id text, p_endpoint_id text, p_action text, p_items int,
	p_meta jsonb) returns void
language plpgsql
as $$
-- Purpose: records a request that was rejected unread: a finished run with its count and an event,
--          or a count in the shared run.
-- Locks:   as join_flood.
-- Writes:  as join_flood.
declare
	v_run_id uuid;
begin
	if autopost.join_flood(p_workspace_id, p_endpoint_id, p_action,
		jsonb_build_object(autopost.drop_counter(p_action), p_items), p_meta) is null then
		v_run_id := autopost.open_run(p_workspace_id, 'push', p_endpoint_id, null);
		perform autopost.close_run(p_workspace_id, v_run_id,
			jsonb_build_object(autopost.drop_counter(p_action), p_items), null);
		perform autopost.emit_note(p_workspace_id, p_action, 'error', null, null, null,
			p_meta || jsonb_build_object('endpoint_id', p_endpoint_id, 'run_id', v_run_id, 'items', p_items));
	end if;
end
$$;

create or replace function autopost.rejection(p_answer jsonb) returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: the meta of the event of a rejected post: its source_ref and its first error.
select jsonb_strip_nulls(jsonb_build_object('source_ref', p_answer -> 'source_ref',
	'field', p_answer #> '{errors,0,field}', 'reason', p_answer #> '{errors,0,reason}'))
$$;

create or replace function autopost.record_rejected(p_workspace_id text, p_endpoint_id text, p_source_id text,
	p_run_id uuid, p_answers jsonb) returns void
language plpgsql
as $$
-- Purpose: writes an event for each rejected post of a run. Above ingress_drops_per_second posts
--          the last event counts the others.
-- Writes:  events (ingress_payload_rejected).
declare
	v_most int := greatest(autopost.setting('ingress_drops_per_second'), 1);
	v_count int := jsonb_array_length(p_answers);
begin
	perform autopost.emit_note(p_workspace_id, 'ingress_payload_rejected', 'error', null, null, null,
		autopost.rejection(a.value) || jsonb_build_object('endpoint_id', p_endpoint_id, 'source_id', p_source_id,
			'run_id', p_run_id, 'items', case when a.ordinality = v_most then v_count - v_most + 1 else 1 end))
	from jsonb_array_elements(p_answers) with ordinality a
	where a.ordinality <= v_most;
end
$$;
