create or replace function autopost.begin_dispatch(p_run_id text, p_lease_seconds int) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- For orchestrators that want one run at a time: leases the turn to p_run_id, 1 to 3600 seconds, with its window of ready workspaces
-- (setting dispatch_window_workspaces), from the one after the last that was served. The turn moves at end_dispatch alone: a run that
-- dies is followed by one over the same workspaces. A second begin of the same run renews the lease and repeats its window.
-- Nothing rests on it: any number of claimers keep every invariant, with or without a lease. Who speaks for all workspaces shares one
-- lease, a role that speaks for some has its own. Looks across workspaces.
-- Returns {"granted": true, "until", "workspaces"} or {"granted": false, "held_by", "until"}. Raises AP001 for a wrong argument.
-- Locks: a transaction-level advisory lock of the scope. Reads: what armed_workspaces reads. Writes: dispatch_cursor.
declare
	v_scope text;
	v_turn autopost.dispatch_cursor;
	v_now timestamptz;
begin
	perform autopost.enter_all_workspaces();
	perform autopost.require('run_id', p_run_id <> '');
	if coalesce(p_lease_seconds not between 1 and 3600, true) then
		perform autopost.refuse('lease_seconds', format('%s is not between 1 and 3600', coalesce(p_lease_seconds::text, 'null')), 'pass 1 to 3600');
	end if;
	v_scope := autopost.dispatch_scope();
	perform autopost.lock_turn(v_scope);
	v_now := autopost.now_ts();
	select c.* into v_turn from autopost.dispatch_cursor c where c.scope = v_scope;
	if v_turn.run_id <> p_run_id and v_turn.lease_until > v_now then
		return jsonb_build_object('granted', false, 'held_by', v_turn.run_id, 'until', v_turn.lease_until);
	end if;
	if v_turn.run_id is distinct from p_run_id then
		v_turn.handed_out := array(select r from autopost.ready_ring(coalesce(v_turn.served, ''), autopost.setting('dispatch_window_workspaces')::int) r);
	end if;
	v_turn.lease_until := v_now + make_interval(secs => p_lease_seconds);
	insert into autopost.dispatch_cursor (scope, run_id, lease_until, handed_out)
	values (v_scope, p_run_id, v_turn.lease_until, v_turn.handed_out)
	on conflict (scope) do update set run_id = excluded.run_id, lease_until = excluded.lease_until, handed_out = excluded.handed_out;
	return jsonb_build_object('granted', true, 'until', v_turn.lease_until, 'workspaces', to_jsonb(v_turn.handed_out));
end
$$;
