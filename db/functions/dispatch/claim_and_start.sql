create or replace function autopost.claim_and_start(p_workspace_id text, p_run_id text, p_limit int, p_capacity jsonb,
	p_auth_refs text[])
returns setof autopost.claimed_delivery
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: claim_within and start_call in one transaction, for a caller that calls at once. Each claim
--          whose slot is due is started if its channel passes the checks of start_call and its
--          credential is in p_auth_refs: pass those whose secret is already known. Limit the claim to
--          free senders. All other claims need start_call. Commit before the first byte of a call.
-- Returns: as claim_within. call_begun_at is set if the call is started; its deadline then is the time
--          by which it must end, and send_at its slot.
-- Raises:  AP001 for a wrong argument; AP002, AP003, AP005 as enter_workspace.
-- Locks:   as claim_rows.
-- Writes:  as claim_rows.
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('auth_refs', p_auth_refs is not null
		and array_position(p_auth_refs, null) is null);
	return query select c.* from autopost.claim_rows(p_workspace_id, p_run_id, p_limit, p_capacity, p_auth_refs) c;
end
$$;
