create or replace function autopost.release_lost(p_workspace_id text, p_run_id text, p_known text[]) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp set lock_timeout = '5s'
as $$
-- Purpose: releases the deliveries and post changes that p_run_id has claimed but does not know. A
--          claim can commit and its answer be lost; while the run is alive, its lease would have to
--          expire first. p_known: the tokens of all claims in flight of the run in this workspace.
--          Call it only while no claim of the run is running there, because the tokens of a running
--          claim are not known yet. A delivery with a started call stays: this request may be
--          late, and the call running.
-- Returns: {"applied": true, "released": n, "started": [{"delivery_id", "claim_token"}]}, at most 1000
--          of each kind. The caller commits each started one that it still does not know as not
--          called. It stops if it would wait for a lock longer than its caller waits for the answer.
-- Locks:   channels, deliveries, channel_gates; post_acts with skip locked.
-- Writes:  deliveries, channel_gates, post_acts, events (released).
declare
	v_deliveries int;
	v_started jsonb;
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
	select coalesce(jsonb_agg(jsonb_build_object('delivery_id', d.delivery_id, 'claim_token', d.claim_token)), '[]')
	into v_started
	from (select d.delivery_id, d.claim_token from autopost.in_flight(p_workspace_id) d
		where d.status = 'sending' and d.claimed_by = p_run_id and d.call_begun_at is not null
			and d.claim_token <> all (p_known)
		limit 1000) d;
	return jsonb_build_object('applied', true, 'started', v_started, 'released',
		v_deliveries + autopost.release_lost_acts(p_workspace_id, p_run_id, p_known));
end
$$;
