create or replace function autopost.claim_within(p_workspace_id text, p_run_id text, p_limit int, p_capacity jsonb)
returns setof autopost.claimed_delivery
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: moves due deliveries to status sending and leases them to p_run_id, each with its own
--          token. Only the claim raises attempt. p_capacity: [{"platform", "rate_group", "room"}]
--          limits the rows of a group, so that no group takes all senders of the caller. An entry
--          without a name applies to all groups; the smallest limit counts. [] means no limit. A
--          channel gives its due rows by greatest(not_before, scheduled_for); a retry keeps its place.
-- Returns: at most p_limit rows (1 to 1000) that may start within a second, or at send_at if it is
--          set. No rows is a normal answer. known_posts is set only after an unknown outcome.
--          call_begun_at and deadline are null.
-- Raises:  AP001 for a wrong argument; AP002, AP003, AP005 as enter_workspace.
-- Locks:   as claim_and_start.
-- Writes:  as claim_and_start.
begin
	return query select c.* from autopost.claim_and_start(p_workspace_id, p_run_id, p_limit, p_capacity, '{}') c;
end
$$;
