create or replace function autopost.release_lost(p_workspace_id text, p_run_id text, p_known text[]) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp set lock_timeout = '5s'
as $$
-- Purpose: releases the deliveries and post changes that p_run_id has claimed but does not know. A
--          claim can commit and its answer be lost; while the run is alive, its lease would have to
--          expire first. p_known: the tokens of all claims in flight of the run in this workspace.
--          Call it only while no claim of the run is running there, because the tokens of a running
--          claim are not known yet. A delivery with a started call stays: its outcome is unknown.
-- Returns: {"applied": true, "released": n}, at most 1000 of each kind. It stops if it would wait
--          for a lock longer than its caller waits for the answer.
-- Locks:   channels, deliveries, channel_gates; post_acts with skip locked.
-- Writes:  deliveries, channel_gates, post_acts, events (released).
declare
	v_deliveries int;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('run_id', p_run_id <> ''),
		autopost.require_argument('known', p_known is not null and array_position(p_known, null) is null);
	v_deliveries := autopost.release_unstarted(p_workspace_id, array(
		select d.claim_token from autopost.in_flight(p_workspace_id) d
		where d.status = 'sending' and d.claimed_by = p_run_id
			and d.claim_token <> all (p_known)
		order by d.claimed_at
		limit 1000), 'answer_lost') ->> 'released';
	return jsonb_build_object('applied', true, 'released',
		v_deliveries + autopost.release_lost_acts(p_workspace_id, p_run_id, p_known));
end
$$;
