create or replace function autopost.observe_clock(p_observer text, p_elapsed_ms bigint default null) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: compares the database's clock with the steady clock of a daemon: the milliseconds
--          between the answers to its last observation and this one, null at the first. A
--          difference over 5 s is a jump (an observation may take 2 s, and two are compared). Then
--          heartbeats and observations move by the jump, and each workspace must run follow_clock
--          before a lease ends. Later observers agree with the new time.
-- Returns: {"jumped_ms"}, 0 without a jump.
-- Locks:   clock_observers.
-- Writes:  clock_observers, clock_jumps, clock_debts, dispatch_runs.
declare
	v_now timestamptz;
	v_seen timestamptz;
	v_jump interval;
	v_id uuid;
begin
	perform autopost.require_argument('observer', p_observer <> ''),
		autopost.require_argument('elapsed_ms', p_elapsed_ms is null or p_elapsed_ms >= 0);
	lock table autopost.clock_observers in share row exclusive mode;
	v_now := autopost.now_ts();
	select o.seen_at into v_seen from autopost.clock_observers o where o.observer = p_observer;
	v_jump := v_now - v_seen - p_elapsed_ms * interval '1 millisecond';
	if greatest(v_jump, -v_jump) > interval '5 seconds' then
		v_id := autopost.new_id();
		insert into autopost.clock_jumps (jump_id, observed_at, jump, observer)
			values (v_id, v_now, v_jump, p_observer);
		insert into autopost.clock_debts (workspace_id, jump_id, jump) select w.workspace_id, v_id, v_jump
			from autopost.workspaces w;
		update autopost.clock_observers o set seen_at = o.seen_at + v_jump, trusted_from = o.trusted_from + v_jump
			where true;
		update autopost.dispatch_runs r set seen_at = r.seen_at + v_jump
		where case when v_jump > interval '0' then r.seen_at <= v_now - v_jump else r.seen_at > v_now end;
	else
		v_jump := interval '0';
	end if;
	delete from autopost.clock_observers o where o.seen_at < v_now - interval '1 day';
	delete from autopost.clock_jumps j
		where j.observed_at not between v_now - interval '30 days' and v_now + interval '30 days';
	insert into autopost.clock_observers as o (observer, seen_at, trusted_from)
	values (p_observer, v_now, case when autopost.clock_agrees(v_now) then v_now
		else v_now + autopost.run_silence() end)
	on conflict (observer) do update set seen_at = excluded.seen_at;
	return jsonb_build_object('jumped_ms', autopost.milliseconds(v_jump));
end
$$;
