-- Drops the functions that no file defines. `create or replace` wrote all others in this transaction.
-- A trigger that still uses a dropped function is an error: a migration must drop the trigger first.
do $$
declare
	v_function regprocedure;
begin
	for v_function in
		select p.oid::regprocedure from pg_catalog.pg_proc p
		where p.pronamespace = 'autopost'::regnamespace
		and p.proowner = 'autopost_owner'::regrole
		and p.xmin <> pg_catalog.pg_current_xact_id()::xid
	loop
		execute format('drop function %s', v_function);
	end loop;
end
$$;
