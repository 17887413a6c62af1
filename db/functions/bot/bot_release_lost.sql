create or replace function autopost.bot_release_lost(p_workspace_id text, p_run_id text, p_known text[])
	returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: releases the messages of bots that p_run_id has claimed but does not know: the answer of a claim
--          was lost, and while the run is alive, the lease would have to expire first. p_known: the
--          tokens of all claims in flight of the run in this workspace. Call it only while no claim of
--          the run is running there. A started call stays: its outcome is unknown. It never waits.
--          Only the engine may call it.
-- Returns: {"applied": true, "released": n}, at most 1000.
-- Raises:  AP001 for a wrong argument; AP002, AP003, AP005 as enter_workspace.
-- Locks:   bot_outbox (skip locked).
-- Writes:  bot_outbox, quota_uses.
declare
	v_now timestamptz;
	v_id uuid;
	v_released int := 0;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('run_id', p_run_id <> ''),
		autopost.require_argument('known', p_known is not null and array_position(p_known, null) is null);
	v_now := autopost.now_ts();
	for v_id in
		select o.reply_id from autopost.bot_outbox o
		where o.workspace_id = p_workspace_id and o.status = 'sending' and o.claimed_by = p_run_id
		and o.started_at is null and o.claim_token <> all (p_known)
		order by o.reply_id
		limit 1000
		for no key update of o skip locked
	loop
		perform autopost.bot_release(p_workspace_id, v_id, v_now);
		v_released := v_released + 1;
	end loop;
	perform pg_notify('autopost_wake', 'bot') where v_released > 0;
	return jsonb_build_object('applied', true, 'released', v_released);
end
$$;
