create or replace function autopost.release_lost(p_workspace_id text, p_run_id text, p_known text[]) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp set lock_timeout = '5s'
as $$
-- Hands back, as release_claims does, what p_run_id has claimed and does not know of, deliveries and acts: a claim can be committed and its answer be
-- lost, and with the run alive nobody else takes it before its lease is over. p_known: the tokens of all that the run has in hand in this workspace.
-- To be asked only while no claim of the run is under way there: what it has taken is not known yet. A call that began stays: its outcome is unknown.
-- Returns {"applied": true, "released": n}; at most 1000 of each at a time. Gives up where it would wait for a lock longer than its caller waits for it.
-- Locks: channels, deliveries, channel_gates, and post_acts with skip locked. Writes: deliveries, channel_gates, post_acts, events(released).
declare
	v_deliveries int;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require('run_id', p_run_id <> ''), autopost.require('known', p_known is not null and array_position(p_known, null) is null);
	v_deliveries := autopost.hand_back_unbegun(p_workspace_id, array(
		select d.claim_token from autopost.deliveries d
		where d.workspace_id = p_workspace_id and d.status = 'sending' and d.claimed_by = p_run_id and d.claim_token <> all (p_known)
		order by d.claimed_at
		limit 1000), 'answer_lost') ->> 'released';
	return jsonb_build_object('applied', true, 'released', v_deliveries + autopost.release_lost_acts(p_workspace_id, p_run_id, p_known));
end
$$;
