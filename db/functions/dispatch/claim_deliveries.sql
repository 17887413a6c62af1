create or replace function autopost.claim_deliveries(p_workspace_id text, p_run_id text, p_limit int)
returns setof autopost.claimed_delivery
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: claim_within without a limit per rate group.
begin
	return query select c.* from autopost.claim_and_start(p_workspace_id, p_run_id, p_limit, '[]', '{}') c;
end
$$;
