create or replace function autopost.list_budgets(p_workspace_id text, p_limit int)
returns table (auth_ref text, month_usd numeric, spent_usd numeric, uses jsonb, ends_at timestamptz)
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: lists the budgets of a workspace by credential: the money spent this month, also by use
--          ({use: dollars}; post: messages), and the end of the month.
-- Raises:  AP001 for a limit outside 1 to 10000.
-- Reads:   budgets, charges.
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.check_read('{}', '{}', p_limit);
	return query
	select s.auth_ref, s.month_usd, s.spent_usd, s.uses, s.ends_at from autopost.budgets_shown(p_workspace_id) s
	order by s.auth_ref
	limit p_limit;
end
$$;
