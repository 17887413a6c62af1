-- Plans of the functions that each claim calls. It is repeatable.
--
-- PostgreSQL plans a statement again for each call while it takes the general plan for dearer. It guesses that an array
-- has ten elements, so for a claim of few rows it always planned again, and that took longer than the claim. These
-- functions keep one plan for each statement: their probes by key have no other good plan, whatever the numbers of rows
-- are. An update of rows by an array has one, which a new table misleads, so its function has no such setting. Nor has any
-- function of a Citus cluster, which cannot plan without the workspace.
do $$
declare
	v_function regprocedure;
	v_cluster boolean := exists (select 1 from pg_catalog.pg_extension e where e.extname = 'citus');
begin
	for v_function in
		select p.oid::regprocedure from pg_catalog.pg_proc p
		where p.pronamespace = 'autopost'::regnamespace and p.proname in ('claim_from_group', 'claimed_channels')
		and v_cluster = coalesce('plan_cache_mode=force_generic_plan' = any (p.proconfig), false)
	loop
		execute format('alter function %s %s', v_function,
			case when v_cluster then 'reset plan_cache_mode' else 'set plan_cache_mode = force_generic_plan' end);
	end loop;
end
$$;
