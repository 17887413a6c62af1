-- Roles and the schema they live by. Run by autopost migrate before the migrations; repeatable. What is missing needs a role that may
-- create roles and schemas; where all is there, a member of autopost_owner is enough.
-- autopost_owner owns everything and logs in nowhere; login roles are made members of one of the other three. The owner is a member of
-- the engine, so that whoever may migrate may also run the daemon with the engine's lesser rights.
do $$
declare
	v_role text;
begin
	foreach v_role in array array['autopost_owner', 'autopost_engine', 'autopost_caller', 'autopost_reader'] loop
		if not exists (select 1 from pg_catalog.pg_roles r where r.rolname = v_role) then
			begin
				execute format('create role %I nologin', v_role);
			exception when duplicate_object or unique_violation then
				null; -- another database of this cluster is being migrated at this moment
			end;
		end if;
	end loop;
	if not pg_catalog.pg_has_role('autopost_owner', 'autopost_engine', 'member') then
		grant autopost_engine to autopost_owner;
	end if;
	if not pg_catalog.pg_has_role(current_user, 'autopost_owner', 'member') then
		grant autopost_owner to current_user;
	end if;
	if not exists (select 1 from pg_catalog.pg_namespace n where n.nspname = 'autopost') then
		create schema autopost authorization autopost_owner;
	end if;
end
$$;
