create or replace function autopost.keep_plans() returns void
language plpgsql
as $$
-- Purpose: sets that the functions of each claim, start and commit keep one plan for each statement.
--          PostgreSQL otherwise plans a statement with an array again for each call: it expects ten
--          elements, so the general plan looks dearer than one for the few rows of a small batch, and
--          planning takes longer than the call. The probes of a claim have one good plan, whatever the
--          sizes are. The others update rows by an array: their plan is right once the statistics know
--          a thousand deliveries. A plan that a new table gets would read all of it for each batch. A
--          Citus cluster cannot plan without the workspace, so it keeps none.
-- Writes:  settings of functions.
declare
	v_function regprocedure;
	v_cluster boolean := exists (select 1 from pg_catalog.pg_extension e where e.extname = 'citus');
	v_known boolean := (select c.reltuples >= 1000 from pg_catalog.pg_class c
		where c.oid = 'autopost.deliveries'::regclass);
begin
	for v_function in
		select p.oid::regprocedure from pg_catalog.pg_proc p
		where p.pronamespace = 'autopost'::regnamespace
		and (p.proname in ('claim_from_group', 'claimed_channels') or (v_known or v_cluster)
			and p.proname in ('claim_and_start', 'update_gates', 'start_together', 'commit_together', 'release_capacity'))
		and v_cluster = coalesce('plan_cache_mode=force_generic_plan' = any (p.proconfig), false)
	loop
		execute format('alter function %s %s', v_function,
			case when v_cluster then 'reset plan_cache_mode' else 'set plan_cache_mode = force_generic_plan' end);
	end loop;
end
$$;
