-- Brings a migrated database onto Citus, and up to date there after each later migration. autopost migrate
-- runs it on a cluster. It is repeatable and follows the catalogue. It runs on the coordinator with all nodes up:
--   psql -X -v ON_ERROR_STOP=1 -d DATABASE -f distribute.sql
-- A table whose primary key starts with workspace_id is distributed by it, next to autopost.workspaces. The tables that
-- each node writes for itself exist on each node. Every other table is a reference table. A public function whose
-- first argument is p_workspace_id runs on the node of its workspace.
-- A statement that ends with \gexec returns statements, which are run.
set citus.enable_unsafe_triggers = on;
set client_min_messages = warning;

-- Functions and triggers read tables within statements, always of the same workspace and so of the same node.
-- Citus refuses that unless it is allowed. Later migrations create triggers again.
do $$
declare
	v_setting text;
	v_failed text;
begin
	foreach v_setting in array array['citus.allow_nested_distributed_execution', 'citus.enable_unsafe_triggers'] loop
		select string_agg(r.nodeid || ': ' || r.result, '; ') into v_failed
		from run_command_on_all_nodes(format('set citus.enable_ddl_propagation = off; alter database %I set %s = on',
			current_database(), v_setting)) r
		where not r.success;
		if v_failed is not null then
			raise exception 'set % on every node: %', v_setting, v_failed
				using hint = 'start all nodes, and migrate as a superuser';
		end if;
	end loop;
end
$$;

create temporary table kinds as
select c.oid::regclass as rel, c.relname as name,
	case when a.attnum = i.indkey[0] then 'distributed'
		when c.relname in ('dispatch_runs', 'dispatch_cursor', 'monitor_duties', 'clock_observers', 'clock_jumps',
			'cluster_identity', 'turns') then 'node'
		when c.relname = 'schema_migrations' then 'coordinator'
		else 'reference' end as kind,
	c.relname = 'workspaces' as leads,
	p.logicalrelid is not null as done
from pg_catalog.pg_class c
left join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attname = 'workspace_id' and not a.attisdropped
left join pg_catalog.pg_index i on i.indrelid = c.oid and i.indisprimary
left join pg_catalog.pg_dist_partition p on p.logicalrelid = c.oid
where c.relnamespace = 'autopost'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition;

-- Reports first what would be refused halfway.
do $$
declare
	v_wrong text;
begin
	select string_agg(pg_catalog.pg_get_indexdef(i.indexrelid), E'\n') into v_wrong
	from kinds k
	join pg_catalog.pg_index i on i.indrelid = k.rel and i.indisunique
	where k.kind = 'distributed'
	and not exists (
		select 1 from pg_catalog.pg_attribute a
		where a.attrelid = k.rel and a.attname = 'workspace_id' and a.attnum = any (i.indkey));
	if v_wrong is not null then
		raise exception 'unique index without workspace_id: %', v_wrong;
	end if;
	select string_agg(k.name || ' ' || f.conname, E'\n') into v_wrong
	from kinds k
	join pg_catalog.pg_constraint f on f.conrelid = k.rel and f.contype = 'f'
	join kinds r on r.rel = f.confrelid
	where k.kind <> 'distributed' and r.kind = 'distributed' or k.kind = 'node' or r.kind = 'node';
	if v_wrong is not null then
		raise exception 'foreign key across kinds of tables: %', v_wrong;
	end if;
end
$$;

-- Foreign keys and triggers of tables that are still plain are dropped. They return when the tables are distributed:
-- a foreign key needs both of its ends, and a trigger would run again for each row that moves.
begin;
set local citus.multi_shard_modify_mode = 'sequential';
do $$
declare
	v record;
	v_return text[];
begin
	v_return := array(
		select format('alter table %s add constraint %I %s', f.conrelid::regclass, f.conname,
			pg_catalog.pg_get_constraintdef(f.oid))
		from pg_catalog.pg_constraint f
		where f.contype = 'f' and f.connamespace = 'autopost'::regnamespace and f.conparentid = 0
		and exists (
			select 1 from kinds k
			where k.rel in (f.conrelid, f.confrelid) and not k.done and k.kind in ('distributed', 'reference')))
	|| array(
		select pg_catalog.pg_get_triggerdef(t.oid)
		from pg_catalog.pg_trigger t
		join kinds k on k.rel = t.tgrelid
		where not t.tgisinternal and t.tgparentid = 0 and not k.done and k.kind in ('distributed', 'reference')
		order by t.oid);
	for v in
		select format('alter table %s drop constraint %I', f.conrelid::regclass, f.conname) as ddl
		from pg_catalog.pg_constraint f
		where f.contype = 'f' and f.connamespace = 'autopost'::regnamespace and f.conparentid = 0
		and exists (
			select 1 from kinds k
			where k.rel in (f.conrelid, f.confrelid) and not k.done and k.kind in ('distributed', 'reference'))
		union all
		select format('drop trigger %I on %s', t.tgname, t.tgrelid::regclass)
		from pg_catalog.pg_trigger t
		join kinds k on k.rel = t.tgrelid
		where not t.tgisinternal and t.tgparentid = 0 and not k.done and k.kind in ('distributed', 'reference')
	loop
		execute v.ddl;
	end loop;
	for v in select k.rel from kinds k where not k.done and k.kind = 'reference' order by k.name loop
		perform create_reference_table(v.rel);
	end loop;
	for v in
		select k.rel, k.leads from kinds k
		where not k.done and k.kind = 'distributed'
		order by not k.leads, k.name
	loop
		perform create_distributed_table(v.rel, 'workspace_id',
			colocate_with => case when v.leads then 'none' else 'autopost.workspaces' end);
	end loop;
	-- The rows that stayed behind on the coordinator.
	for v in select k.rel from kinds k where not k.done and k.kind in ('distributed', 'reference') order by k.name loop
		perform truncate_local_data_after_distributing_table(v.rel);
	end loop;
	for v in select r.ddl from unnest(v_return) with ordinality r (ddl, place) order by r.place loop
		execute v.ddl;
	end loop;
end
$$;
commit;

-- The tables of each node. A table that differs from that of the coordinator is created again: its rows are
-- heartbeats and observations, which return within a minute.
do $$
declare
	v record;
	v_failed text;
begin
	for v in
		select k.name, k.rel, (
			select string_agg(d.ddl, ';' order by d.place)
			from master_get_table_ddl_events(k.rel::text) with ordinality d (ddl, place)) as ddl
		from kinds k
		where k.kind = 'node'
		order by k.name
	loop
		select string_agg(r.nodeid || ': ' || r.result, '; ') into v_failed
		from run_command_on_all_nodes(format($c$
			set citus.enable_ddl_propagation = off;
			do $d$
			begin
				if coalesce((
					select string_agg(d.ddl, ';' order by d.place) <> %1$L
					from master_get_table_ddl_events(to_regclass('autopost.%2$s')::text) with ordinality d (ddl, place)
					where to_regclass('autopost.%2$s') is not null), true) then
					drop table if exists autopost.%2$s;
					%3$s;
				end if;
			end
			$d$
			$c$, v.ddl, v.name, v.ddl)) r
		where not r.success;
		if v_failed is not null then
			raise exception 'create the table % of each node: %', v.name, v_failed
				using hint = 'start all nodes, and migrate as a superuser';
		end if;
	end loop;
end
$$;

-- The functions of core/cluster.sql, for the nodes of this cluster. A node without shards is the coordinator.
create or replace function autopost.has_shards() returns boolean
language plpgsql stable
as $$
-- Purpose: true if this node has workspaces.
begin
	return exists (
		select 1 from pg_catalog.pg_dist_shard s
		join pg_catalog.pg_dist_placement p on p.shardid = s.shardid
		join pg_catalog.pg_dist_local_group l on l.groupid = p.groupid
		where s.logicalrelid = 'autopost.workspaces'::regclass);
end
$$;

create or replace function autopost.workspaces_here() returns text[]
language plpgsql stable set citus.node_connection_timeout = '2s'
as $$
-- Purpose: the workspaces of the shards of this node. On the coordinator: null while all nodes answer,
--          else the workspaces of those that do. The answer of the nodes holds for 2 s in a session.
declare
	v_local text;
	v_here text[];
	v_asked_at text := current_setting('autopost.nodes_asked_at', true);
begin
	select string_agg(format('select w.workspace_id from autopost.workspaces_%s w', s.shardid), ' union all ')
	into v_local
	from pg_catalog.pg_dist_shard s
	join pg_catalog.pg_dist_placement p on p.shardid = s.shardid
	join pg_catalog.pg_dist_local_group l on l.groupid = p.groupid
	where s.logicalrelid = 'autopost.workspaces'::regclass;
	if v_local is not null then
		execute 'select array(' || v_local || ')' into v_here;
		return v_here;
	end if;
	if coalesce(v_asked_at, '') = '' or v_asked_at::timestamptz < clock_timestamp() - interval '2 seconds' then
		perform set_config('autopost.nodes_down',
			(select count(*) from run_command_on_workers('select 1') r where not r.success)::text, false);
		perform set_config('autopost.nodes_asked_at', clock_timestamp()::text, false);
	end if;
	if current_setting('autopost.nodes_down') = '0' then
		return null;
	end if;
	return array(
		select jsonb_array_elements_text(r.result::jsonb)
		from run_command_on_workers('select to_jsonb(autopost.workspaces_here())') r
		where r.success);
end
$$;

create or replace function autopost.share_heartbeat(p_run_id text, p_host text, p_ended boolean) returns void
language plpgsql set citus.node_connection_timeout = '2s'
as $$
-- Purpose: records the heartbeat of a daemon at the coordinator on each worker that answers.
begin
	if not autopost.has_shards() then
		perform count(*)
		from run_command_on_workers(format('select autopost.touch_run(%L, %L, %L)', p_run_id, p_host, p_ended));
	end if;
end
$$;

create or replace function autopost.daemons_of_nodes()
	returns table (run_id text, seen_at timestamptz, alive boolean, config text, skew_ms bigint, failing text[])
language plpgsql volatile set citus.node_connection_timeout = '2s'
as $$
-- Purpose: the daemons of all nodes that answer. A daemon at the coordinator has its duties there alone.
begin
	return query
	select distinct on (d.run_id) d.run_id, d.seen_at, d.alive, d.config, d.skew_ms, d.failing
	from run_command_on_all_nodes('select coalesce(jsonb_agg(to_jsonb(d)), ''[]'') from autopost.daemons_of_node() d') r
	cross join lateral jsonb_to_recordset(case when r.success then r.result::jsonb else '[]' end) as d (run_id text,
		seen_at timestamptz, alive boolean, config text, skew_ms bigint, failing text[])
	order by d.run_id, d.config is null, d.seen_at desc;
end
$$;
revoke all on function autopost.has_shards() from public;
alter function autopost.has_shards() owner to autopost_owner;

-- "create function" goes to the nodes only if all that the function depends on is there: functions that take or
-- return rows of a table that was still plain stayed on the coordinator. They are created again, with their rights.
set check_function_bodies = off;
create temporary table missing as
select p.oid from pg_catalog.pg_proc p
left join pg_catalog.pg_dist_object o on o.classid = 'pg_proc'::regclass and o.objid = p.oid
where p.pronamespace = 'autopost'::regnamespace and o.objid is null;
select pg_catalog.pg_get_functiondef(m.oid) from missing m
\gexec
select format('revoke all on function %s from public', m.oid::regprocedure) from missing m
\gexec
select format('grant execute on function %s to %I', m.oid::regprocedure, a.grantee::regrole)
from missing m
join pg_catalog.pg_proc p on p.oid = m.oid
cross join lateral aclexplode(p.proacl) a
where a.grantee <> 0
\gexec

-- The functions that are not registered yet. A new overload never is.
select format('select create_distributed_function(%L, ''p_workspace_id'', colocate_with := ''autopost.workspaces'')',
	p.oid::regprocedure)
from pg_catalog.pg_proc p
left join pg_catalog.pg_dist_object o on o.classid = 'pg_proc'::regclass and o.objid = p.oid
where p.pronamespace = 'autopost'::regnamespace and p.prosecdef and p.prorettype <> 'trigger'::regtype
and p.proargnames[1] = 'p_workspace_id'
and o.distribution_argument_index is null
order by p.proname
\gexec
drop table missing, kinds;
