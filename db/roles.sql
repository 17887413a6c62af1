-- Roles and the schema. `autopost migrate` runs it before the migrations. It is repeatable: adding a
-- missing role or the schema needs the right to create roles and schemas; otherwise membership in
-- autopost_owner is enough.
-- autopost_owner owns everything and has no login, except in a Citus cluster. Login roles are members of one of the other three.
-- The owner is a member of the engine, so that a migrating role can also run the daemon with the
-- engine's smaller rights.
do $$
declare
	v_role text;
begin
	foreach v_role in array array['autopost_owner', 'autopost_engine', 'autopost_caller', 'autopost_reader'] loop
		if not exists (select 1 from pg_catalog.pg_roles r where r.rolname = v_role) then
			begin
				execute format('create role %I nologin', v_role);
			exception when duplicate_object or unique_violation then
				null; -- another database of this cluster runs the same migration
			end;
		end if;
	end loop;
	if not pg_catalog.pg_has_role('autopost_owner', 'autopost_engine', 'member') then
		grant autopost_engine to autopost_owner;
	end if;
	if not pg_catalog.pg_has_role(current_user, 'autopost_owner', 'member') then
		grant autopost_owner to current_user;
	end if;
	-- The nodes of a Citus cluster connect to each other as the current role. That is the owner in a public function.
	if exists (select 1 from pg_catalog.pg_extension e where e.extname = 'citus') then
		foreach v_role in array array['autopost_owner', 'autopost_engine', 'autopost_caller', 'autopost_reader'] loop
			if not (select r.rolcanlogin from pg_catalog.pg_roles r where r.rolname = v_role) then
				execute format('alter role %I login', v_role);
			end if;
		end loop;
	end if;
	if not exists (select 1 from pg_catalog.pg_namespace n where n.nspname = 'autopost') then
		create schema autopost authorization autopost_owner;
	end if;
end
$$;
