create or replace function autopost.end_dispatch(p_run_id text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: ends the lease of begin_dispatch and moves the turn past its window. A late call counts
--          unless another run has taken the lease.
-- Returns: {"applied": true, "served"}: the last workspace of the window, or {"applied": false,
--          "reason": "stale"}.
-- Locks:   a transaction-level advisory lock of the scope.
-- Writes:  dispatch_cursor.
declare
	v_scope text;
	v_served text;
begin
	perform autopost.enter_all_workspaces();
	perform autopost.require_argument('run_id', p_run_id <> '');
	v_scope := autopost.dispatch_scope();
	perform autopost.lock_turn(v_scope);
	update autopost.dispatch_cursor c
	set served = coalesce(c.handed_out[cardinality(c.handed_out)], c.served), run_id = null, lease_until = null,
		handed_out = '{}'
	where c.scope = v_scope and c.run_id = p_run_id
	returning c.served into v_served;
	if not found then
		return '{"applied": false, "reason": "stale"}';
	end if;
	return jsonb_build_object('applied', true, 'served', v_served);
end
$$;
