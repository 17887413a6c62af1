create or replace function autopost.rearm_gates(p_workspace_id text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- The net below the gates: opens those that are later than what is due in their channel while its posting window is open, and recounts what is in flight. In a sound
-- system it finds nothing. Gates that somebody holds are left to them. Returns {"rearmed"}.
-- Locks: channel_gates (skip locked). Reads: channels, deliveries. Writes: channel_gates.
declare
	v_gate record;
	v_count int := 0;
	v_inflight int;
	v_due timestamptz;
begin
	perform autopost.enter_workspace(p_workspace_id);
	for v_gate in
		select g.channel_id, g.ready_at, g.inflight, c.max_parallel, c.window_mode, c.timezone, c.posting_window,
			case when c.enabled then coalesce(greatest(c.paused_until, c.cooldown_until,
				case when c.rate_rps > 0 then c.next_allowed_at end), '-infinity') else 'infinity' end as not_before
		from autopost.channel_gates g
		join autopost.channels c on c.workspace_id = p_workspace_id and c.channel_id = g.channel_id
		where g.workspace_id = p_workspace_id
		order by g.channel_id
		for no key update of g skip locked
	loop
		select count(*) into v_inflight from autopost.deliveries d
		where d.workspace_id = p_workspace_id and d.channel_id = v_gate.channel_id and d.status = 'sending';
		v_due := case when v_inflight >= v_gate.max_parallel then 'infinity'
			else greatest(v_gate.not_before, autopost.next_due(p_workspace_id, v_gate.channel_id)) end;
		if v_gate.window_mode = 'windowed' and v_due < v_gate.ready_at then
			v_due := autopost.opens_at(v_gate.window_mode, v_gate.timezone, v_gate.posting_window, greatest(v_due, autopost.now_ts()));
		end if;
		if v_due < v_gate.ready_at then
			v_due := greatest(v_due, autopost.quota_free_at(p_workspace_id, 'channel:' || v_gate.channel_id, autopost.now_ts()));
		end if;
		if v_inflight <> v_gate.inflight or (v_due < v_gate.ready_at and v_gate.ready_at > autopost.now_ts()) then
			update autopost.channel_gates g
			set inflight = v_inflight, ready_at = least(g.ready_at, v_due)
			where g.workspace_id = p_workspace_id and g.channel_id = v_gate.channel_id;
			v_count := v_count + 1;
		end if;
	end loop;
	if v_count > 0 then
		perform pg_notify('autopost_wake', 'deliveries');
	end if;
	return jsonb_build_object('rearmed', v_count);
end
$$;
