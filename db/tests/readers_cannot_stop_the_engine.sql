-- A login of a reader or caller takes no lock that the engine waits for, and does not count as a daemon.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(9);

create role contract_reader login in role autopost_reader;
create role contract_caller login in role autopost_caller;
insert into autopost.role_workspaces (role_name, workspace_id) values ('contract_reader', 'w'), ('contract_caller', 'w');
create function test.refused(p_role text, p_sql text) returns boolean
language plpgsql
as $$
begin
	execute format('set local session authorization %I', p_role);
	begin
		execute p_sql;
	exception when insufficient_privilege then
		reset session authorization;
		return true;
	end;
	reset session authorization;
	return false;
end
$$;

select ok(test.refused('contract_reader', 'select 1 from autopost.turns for update'), 'the locks are rows of the owner');
select ok(test.refused('contract_caller', 'select 1 from autopost.turns'));
select ok(test.refused('contract_caller', 'lock table autopost.turns in exclusive mode'));
select ok(test.refused('contract_reader', $$select autopost.touch_run('x')$$));
select ok(test.refused('contract_caller', $$select autopost.touch_run('x')$$), 'a run of a caller does not count as a daemon');
select is((select count(*)::int from autopost.dispatch_runs), 0);

select ok(autopost.try_turn('one') and autopost.try_turn('one'), 'the holder has it');
select is((select string_agg(p.proname::text, ',' order by p.proname) from pg_proc p
	where p.pronamespace = 'autopost'::regnamespace
	and p.prosrc ~ 'pg_(try_)?advisory' and p.prosrc !~ 'hashtextextended'), null, 'no advisory lock has a fixed key');

-- Runs that are long over are forgotten.
select autopost.touch_run('old');
select test.tick('31 days');
select autopost.touch_run('new');
select autopost.check_installation();
select is((select array_agg(run_id) from autopost.dispatch_runs), '{new}');
select * from finish();
rollback;
