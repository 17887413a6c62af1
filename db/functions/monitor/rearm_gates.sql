create or replace function autopost.unlist_idle(p_workspace_id text) returns void
language plpgsql
as $$
-- Purpose: removes channels with no call in flight from channels_in_flight.
-- Locks:   channel_gates (skip locked).
-- Writes:  channel_gates, channels_in_flight.
declare
	v_idle text[];
begin
	v_idle := array(
		select g.channel_id from autopost.channel_gates g
		where g.workspace_id = p_workspace_id and g.inflight = 0
		and g.channel_id = any (array(
			select f.channel_id from autopost.channels_in_flight f where f.workspace_id = p_workspace_id))
		order by g.channel_id
		for no key update of g skip locked);
	if v_idle <> '{}' then
		delete from autopost.channels_in_flight f
		where f.workspace_id = p_workspace_id and f.channel_id = any (v_idle);
		update autopost.channel_gates g set listed = false
		where g.workspace_id = p_workspace_id and g.channel_id = any (v_idle);
	end if;
end
$$;

create or replace function autopost.rearm_gates(p_workspace_id text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: repairs gates: opens those that are later than a due delivery while the posting window
--          is open, and recounts calls in flight. It finds nothing in a correct system. Skips
--          locked gates. Marks late channels for check_alerts. Removes channels without calls from
--          channels_in_flight.
-- Returns: {"rearmed"}.
-- Locks:   channel_gates (skip locked).
-- Reads:   channels, deliveries, quotas, settings.
-- Writes:  channel_gates, channels_in_flight.
declare
	v_late_before timestamptz;
	v_doubtful text[];
	v_gate record;
	v_count int := 0;
	v_inflight int;
	v_next timestamptz;
	v_due timestamptz;
	v_wrong boolean;
	v_late boolean;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_late_before := autopost.late_before(autopost.alert_levels(), autopost.now_ts());
	v_doubtful := autopost.doubtful_gates(p_workspace_id, v_late_before);
	for v_gate in
		select g.channel_id, g.ready_at, g.inflight, g.late, c.max_parallel, c.window_mode, c.timezone,
			c.posting_window,
			case when c.enabled then coalesce(greatest(c.paused_until, c.cooldown_until, c.credential_until,
				case when c.effective_rps > 0 then c.next_allowed_at end), '-infinity') else 'infinity' end as not_before,
			autopost.is_held(row(c.*)::autopost.channels, g.ready_at, autopost.now_ts()) as held
		from autopost.channel_gates g
		join autopost.channels c on c.workspace_id = p_workspace_id and c.channel_id = g.channel_id
		where g.workspace_id = p_workspace_id and g.channel_id = any (v_doubtful)
		order by g.channel_id
		for no key update of g skip locked
	loop
		select count(*) into v_inflight from autopost.deliveries d
		where d.workspace_id = p_workspace_id and d.channel_id = v_gate.channel_id
			and d.phase in ('active', 'retry') and d.status = 'sending';
		v_next := autopost.next_due(p_workspace_id, v_gate.channel_id);
		v_due := case when v_inflight >= v_gate.max_parallel then 'infinity'
			else greatest(v_gate.not_before, v_next) end;
		if v_gate.window_mode = 'windowed' and v_due < v_gate.ready_at then
			v_due := autopost.opens_at(v_gate.window_mode, v_gate.timezone, v_gate.posting_window,
				greatest(v_due, autopost.now_ts()));
		end if;
		if v_due < v_gate.ready_at then
			v_due := greatest(v_due, autopost.channel_quota_until(p_workspace_id, v_gate.channel_id, 1,
				autopost.now_ts()));
		end if;
		v_wrong := v_inflight <> v_gate.inflight or (v_due < v_gate.ready_at and v_gate.ready_at > autopost.now_ts());
		v_late := not v_gate.held and coalesce(v_next <= v_late_before, false);
		if v_wrong or v_late <> v_gate.late then
			update autopost.channel_gates g
			set inflight = v_inflight, listed = g.listed or v_inflight > 0,
				ready_at = case when v_wrong then least(g.ready_at, v_due) else g.ready_at end, late = v_late
			where g.workspace_id = p_workspace_id and g.channel_id = v_gate.channel_id;
			perform autopost.list_in_flight(p_workspace_id, array[v_gate.channel_id]) where v_inflight > 0;
			v_count := v_count + v_wrong::int;
		end if;
	end loop;
	perform autopost.unlist_idle(p_workspace_id);
	if v_count > 0 then
		perform pg_notify('autopost_wake', 'deliveries');
	end if;
	return jsonb_build_object('rearmed', v_count);
end
$$;
