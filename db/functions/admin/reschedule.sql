create or replace function autopost.move_obstacle(p_delivery autopost.deliveries) returns text
language plpgsql stable
as $$
-- Purpose: why a delivery cannot be moved; null if it can. A retry whose calls certainly made no
--          part of the post has not begun.
begin
	return case
		when p_delivery.delivery_id is null then 'unknown_delivery'
		when p_delivery.status in ('claimed', 'sending') then 'begun'
		when p_delivery.status = 'sent' then 'sent'
		when p_delivery.status not in ('queued', 'retry') then 'ended'
		when p_delivery.unknown_outcomes > 0
			or coalesce(p_delivery.render_meta #> '{series_progress,steps}', '{}') <> '{}' then 'begun' end;
end
$$;

create or replace function autopost.time_obstacle(p_workspace_id text, p_delivery autopost.deliveries, p_at timestamptz,
	p_now timestamptz) returns text
language plpgsql stable
as $$
-- Purpose: why a delivery that waits cannot get this time (null: no slot is free); null if it can.
-- Reads:   post_acts.
begin
	return case
		when p_at is null then 'no_slot'
		when p_at < p_now - interval '1 minute' then 'in_the_past'
		when p_at > p_now + autopost.schedule_horizon() then 'too_late'
		when p_at = p_delivery.scheduled_for then 'unchanged'
		when exists (
			select 1 from autopost.post_acts a
			where a.workspace_id = p_workspace_id and a.delivery_id = p_delivery.delivery_id and a.status = 'queued'
				and a.due_at <= p_at and autopost.came_with_its_post(row(a.*)::autopost.post_acts))
					then 'after_removal' end;
end
$$;

create or replace function autopost.move_message(p_reason text) returns text
language sql immutable parallel safe
as $$
-- Purpose: a reason of move_obstacle or time_obstacle in words, with the remedy.
select case p_reason
	when 'unknown_delivery' then 'the workspace does not have this delivery: run autopost deliveries list'
	when 'begun' then 'its call has begun: wait for the outcome'
	when 'sent' then 'it was sent: edit or delete the post'
	when 'ended' then 'it ended: requeue it'
	when 'no_slot' then 'its channel has no free slot: give a time'
	when 'in_the_past' then 'the time must be in the future: choose a later one'
	when 'too_late' then format('the time must be within %s: choose an earlier one', autopost.schedule_horizon())
	when 'unchanged' then 'it has this time already'
	when 'after_removal' then 'the post is removed before that time: cancel its removal first (deliveries cancel)' end
$$;

create or replace function autopost.move_delivery(p_workspace_id text, p_delivery_id uuid, p_to jsonb, p_without uuid[],
	p_meta jsonb) returns jsonb
language plpgsql
as $$
-- Purpose: moves one locked delivery. p_to and p_without: see move_deliveries.
-- Returns: its result.
-- Writes:  deliveries, events (rescheduled).
declare
	v_now timestamptz := autopost.now_ts();
	v_delivery autopost.deliveries;
	v_channel autopost.channels;
	v_reason text;
	v_at timestamptz;
begin
	select d.* into v_delivery from autopost.deliveries d
	where d.workspace_id = p_workspace_id and d.delivery_id = p_delivery_id;
	v_reason := autopost.move_obstacle(v_delivery);
	if v_reason is null then
		v_at := case
			when p_to ? 'at' then (p_to ->> 'at')::timestamptz
			when p_to ? 'seconds' then greatest(autopost.planned_at(v_delivery), v_now)
				+ make_interval(secs => (p_to ->> 'seconds')::float8)
			else autopost.slot_of(v_delivery, p_without) end;
		v_reason := autopost.time_obstacle(p_workspace_id, v_delivery, v_at, v_now);
		if v_reason is null then
			perform autopost.set_schedule(p_workspace_id, p_delivery_id, v_at, null),
				autopost.emit_event(p_workspace_id, 'rescheduled', 'ok', v_delivery, null, p_meta || jsonb_build_object(
					'scheduled_for', v_at, 'before', autopost.planned_at(v_delivery)));
		end if;
	end if;
	select c.* into v_channel from autopost.channels c
	where c.workspace_id = p_workspace_id and c.channel_id = v_delivery.channel_id;
	return jsonb_strip_nulls(jsonb_build_object('delivery_id', p_delivery_id, 'channel_id', v_delivery.channel_id,
		'status', case when v_reason is null then 'moved' else 'refused' end, 'reason', v_reason,
		'message', autopost.move_message(v_reason), 'before', autopost.planned_at(v_delivery),
		'scheduled_for', case when v_reason is null then v_at end,
		'opens_at', case when v_reason is null then nullif(autopost.opens_at(v_channel.window_mode, v_channel.timezone,
			v_channel.posting_window, greatest(v_at, v_now)), 'infinity') end));
end
$$;

create or replace function autopost.move_deliveries(p_workspace_id text, p_delivery_ids uuid[], p_to jsonb,
	p_meta jsonb)
	returns jsonb
language plpgsql
as $$
-- Purpose: moves deliveries in the order of the ids, each once. p_to: {"at": instant}, {"seconds":
--          later than planned, or earlier if negative} or {"slot": "next_free"}. A claim sees the
--          old time or the new one, because both lock the delivery.
-- Returns: the results.
-- Locks:   quotas and budgets for a slot, channels, deliveries, channel_gates, in this order.
-- Writes:  deliveries, channel_gates, events (rescheduled), admin_audit_log.
declare
	v_ids uuid[];
	v_results jsonb := '[]';
	v_moved jsonb;
begin
	select array_agg(u.id order by u.n) into v_ids
	from (select i.id, min(i.n) as n from unnest(p_delivery_ids) with ordinality i (id, n) group by i.id) u;
	if p_to ? 'slot' then
		perform autopost.lock_slots(p_workspace_id, array(select distinct d.channel_id from autopost.deliveries d
			where d.workspace_id = p_workspace_id and d.delivery_id = any (v_ids)));
	end if;
	perform autopost.lock_for_commit(p_workspace_id, v_ids, false);
	for v_n in 1 .. cardinality(v_ids) loop
		v_results := v_results || autopost.move_delivery(p_workspace_id, v_ids[v_n], p_to, v_ids[v_n + 1 :], p_meta);
	end loop;
	v_moved := jsonb_path_query_array(v_results, '$[*] ? (@.status == "moved")');
	if v_moved <> '[]' then
		perform autopost.arm_gates(p_workspace_id,
			array(select distinct m.value ->> 'channel_id' from jsonb_array_elements(v_moved) m),
			(select min(d.due_at) from autopost.deliveries d
			where d.workspace_id = p_workspace_id and d.delivery_id in (
				select (m.value ->> 'delivery_id')::uuid from jsonb_array_elements(v_moved) m)));
		perform autopost.audit(p_workspace_id, 'reschedule', 'deliveries', p_meta,
			autopost.changed(v_moved, 'delivery_id', 'before'), autopost.changed(v_moved, 'delivery_id',
				'scheduled_for'));
	end if;
	return v_results;
end
$$;

create or replace function autopost.moved(p_workspace_id text, p_delivery_ids uuid[], p_to jsonb, p_operator text,
	p_reason text, p_dry_run boolean) returns jsonb
language plpgsql
as $$
-- Purpose: checks the arguments of a move and does it. A dry run does the same and rolls back.
-- Returns: as reschedule.
-- Raises:  AP001 for a wrong argument.
declare
	v_meta jsonb := autopost.manual_act(p_operator, p_reason, p_dry_run);
	v_results jsonb;
	v_count int;
begin
	perform autopost.require_argument('delivery_ids', cardinality(p_delivery_ids) > 0
		and array_position(p_delivery_ids, null) is null);
	if cardinality(p_delivery_ids) > 1000 then
		perform autopost.raise_argument('delivery_ids', format('must have at most 1000 ids, got %s',
			cardinality(p_delivery_ids)), 'make several calls');
	end if;
	if p_dry_run then
		begin
			v_results := autopost.move_deliveries(p_workspace_id, p_delivery_ids, p_to, v_meta);
			raise exception 'planned' using errcode = 'AP900';
		exception when sqlstate 'AP900' then
			null; -- the writes are rolled back, the variables stay
		end;
	else
		v_results := autopost.move_deliveries(p_workspace_id, p_delivery_ids, p_to, v_meta);
	end if;
	v_count := jsonb_array_length(jsonb_path_query_array(v_results, '$[*] ? (@.status == "moved")'));
	return jsonb_build_object('applied', v_count > 0, 'dry_run', p_dry_run, 'moved', v_count, 'refused',
		jsonb_array_length(v_results) - v_count, 'results', v_results);
end
$$;

create or replace function autopost.check_move_time(p_field text, p_at timestamptz) returns void
language plpgsql stable
as $$
-- Purpose: refuses a time in the past or beyond schedule_horizon.
-- Raises:  AP001.
begin
	if p_at < autopost.now_ts() - interval '1 minute' then
		perform autopost.raise_argument(p_field, format('must be in the future, got %s', autopost.instant_text(p_at)),
			'choose a later time, or the next free slot');
	elsif p_at > autopost.now_ts() + autopost.schedule_horizon() then
		perform autopost.raise_argument(p_field, format('must be within %s, got %s', autopost.schedule_horizon(),
			coalesce(autopost.instant_text(p_at), 'infinity')), 'choose an earlier time');
	end if;
end
$$;

create or replace function autopost.reschedule(p_workspace_id text, p_delivery_ids uuid[], p_at timestamptz,
	p_operator text, p_reason text, p_dry_run boolean) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: moves deliveries that wait to another time; p_at null: each to the next free slot of its
--          channel. A delivery whose call began, or of which a part was sent, stays. Posting window,
--          rates, quotas, budget and the wait after a failure hold as for a new post. At most 1,000
--          ids.
-- Returns: {"applied", "dry_run", "moved", "refused", "results": [{"delivery_id", "channel_id",
--          "status": "moved" | "refused", "before": its planned time, and "scheduled_for",
--          "opens_at": when the posting window is open then or next; or "reason", "message"}]}, in
--          the order of the ids. "reason": unknown_delivery, begun, sent, ended, unchanged, no_slot,
--          too_late, in_the_past, after_removal. A dry run has the same answer.
-- Raises:  AP001 for a wrong argument.
-- Locks:   quotas and budgets for a slot, channels, deliveries, channel_gates, audit_heads, in this
--          order.
-- Reads:   post_acts; as next_free_slots for a slot.
-- Writes:  deliveries, channel_gates, events (rescheduled), admin_audit_log.
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.check_move_time('at', p_at);
	return autopost.moved(p_workspace_id, p_delivery_ids, case when p_at is null then '{"slot": "next_free"}'
		else jsonb_build_object('at', p_at) end, p_operator, p_reason, p_dry_run);
end
$$;
