create or replace function autopost.begin_dispatch(p_run_id text, p_lease_seconds int) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: for orchestrators that want one run at a time. It leases the turn to p_run_id for 1 to
--          3600 seconds, with a window of ready workspaces (dispatch_window) after the last served
--          one. Only end_dispatch moves the turn: the run after a crashed one gets the same
--          workspaces. A repeated call of a run renews the lease and returns the same window. No
--          invariant depends on it: any number of dispatchers may claim without it. Roles that may
--          act for all workspaces share one lease; any other role has its own. It covers all
--          workspaces of the role.
-- Returns: {"granted": true, "until", "workspaces"} or {"granted": false, "held_by", "until"}.
-- Raises:  AP001 for a wrong argument.
-- Locks:   a transaction-level advisory lock of the scope.
-- Reads:   as armed_workspaces.
-- Writes:  dispatch_cursor.
declare
	v_scope text;
	v_turn autopost.dispatch_cursor;
	v_now timestamptz;
begin
	perform autopost.enter_all_workspaces();
	perform autopost.require_argument('run_id', p_run_id <> '');
	if coalesce(p_lease_seconds not between 1 and 3600, true) then
		perform autopost.raise_argument('lease_seconds',
			format('must be between 1 and 3600, got %s', coalesce(p_lease_seconds::text, 'null')), 'pass 1 to 3600');
	end if;
	v_scope := autopost.dispatch_scope();
	perform autopost.lock_turn(v_scope);
	v_now := autopost.now_ts();
	select c.* into v_turn from autopost.dispatch_cursor c where c.scope = v_scope;
	if v_turn.run_id <> p_run_id and v_turn.lease_until > v_now then
		return jsonb_build_object('granted', false, 'held_by', v_turn.run_id, 'until', v_turn.lease_until);
	end if;
	if v_turn.run_id is distinct from p_run_id then
		v_turn.handed_out := array(select r
			from autopost.ready_ring(coalesce(v_turn.served, ''), autopost.dispatch_window()) r);
	end if;
	v_turn.lease_until := v_now + make_interval(secs => p_lease_seconds);
	insert into autopost.dispatch_cursor (scope, run_id, lease_until, handed_out)
	values (v_scope, p_run_id, v_turn.lease_until, v_turn.handed_out)
	on conflict (scope) do update set run_id = excluded.run_id, lease_until = excluded.lease_until,
		handed_out = excluded.handed_out;
	return jsonb_build_object('granted', true, 'until', v_turn.lease_until, 'workspaces', to_jsonb(v_turn.handed_out));
end
$$;
