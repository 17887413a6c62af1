package schema_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/pg/schema"
	"autopost/internal/testing/pgtest"
)

// citusStandIn has the names of Citus that a migration uses, on plain PostgreSQL. They only take notes. make test-citus
// migrates a real cluster.
const citusStandIn = `
	set allow_system_table_mods = on;
	insert into pg_catalog.pg_extension (oid, extname, extowner, extnamespace, extrelocatable, extversion)
		values (999999, 'citus', 10, 'pg_catalog'::regnamespace, false, '13.2-1');
	create table pg_catalog.pg_dist_partition (logicalrelid regclass, place serial, kind text);
	create table pg_catalog.pg_dist_object (classid oid, objid oid, distribution_argument_index int);
	insert into pg_catalog.pg_dist_object select 'pg_proc'::regclass, p.oid from pg_proc p where p.pronamespace = 'autopost'::regnamespace;
	create table public.commands (command text);
	create function pg_catalog.citus_is_coordinator() returns boolean language sql as 'select true';
	create function pg_catalog.create_reference_table(regclass) returns void language sql as
		'insert into pg_dist_partition (logicalrelid, kind) values ($1, ''reference'')';
	create function pg_catalog.create_distributed_table(regclass, text, colocate_with text) returns void language sql as
		'insert into pg_dist_partition (logicalrelid, kind) values ($1, $2 || '' with '' || $3)';
	create function pg_catalog.create_distributed_function(regprocedure, text, colocate_with text) returns void language sql as
		'insert into pg_dist_object values (''pg_proc''::regclass, $1, 0)';
	create function pg_catalog.truncate_local_data_after_distributing_table(regclass) returns void language sql as '';
	create function pg_catalog.master_get_table_ddl_events(text) returns setof text language sql as $$ select 'create table ' || $1 $$;
	create function pg_catalog.run_command_on_all_nodes(text) returns table (nodeid int, success boolean, result text) language sql as
		'insert into public.commands values ($1); select 1, true, ''''';`

func TestMigrateDistributesTheSchema(t *testing.T) {
	db := pgtest.NewAlone(t)
	const constraints = `select count(*) || ' constraints, ' || (select count(*) from pg_trigger t where not t.tgisinternal) || ' triggers'
		from pg_constraint c where c.connamespace = 'autopost'::regnamespace`
	before := pgtest.Value[string](db, constraints)
	db.Exec(citusStandIn)
	db.Exec(`update autopost.installed_functions set digest = 'older'`)
	require.NoError(t, schema.Migrate(t.Context(), db.URL("")))

	require.Equal(t, before, pgtest.Value[string](db, constraints), "foreign keys and triggers return")
	require.Equal(t, []string{"first_links", "installed_functions", "media_removals", "platforms", "retry_policies", "role_workspaces", "secret_lookup", "sessions", "settings",
		"use_prices", "users"},
		pgtest.Column[string](db, `select c.relname from pg_dist_partition p join pg_class c on c.oid = p.logicalrelid where p.kind = 'reference' order by 1`))
	require.Equal(t, "workspaces", pgtest.Value[string](db, `
		select c.relname from pg_dist_partition p join pg_class c on c.oid = p.logicalrelid where p.kind <> 'reference' order by p.place limit 1`))
	require.Empty(t, pgtest.Column[string](db, `
		select c.relname from pg_class c
		join pg_attribute a on a.attrelid = c.oid and a.attname = 'workspace_id'
		join pg_index i on i.indrelid = c.oid and i.indisprimary and i.indkey[0] = a.attnum
		left join pg_dist_partition p on p.logicalrelid = c.oid
		where c.relnamespace = 'autopost'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
		and p.kind is distinct from 'workspace_id with ' || case c.relname when 'workspaces' then 'none' else 'autopost.workspaces' end`))
	require.Equal(t, 7, pgtest.Value[int](db, `select count(*)::int from public.commands where command like '%drop table if exists%'`), "tables of each node")
	const unregistered = `select count(*)::int from pg_proc p where p.pronamespace = 'autopost'::regnamespace and p.prosecdef and p.proargnames[1] = 'p_workspace_id'
		and p.prorettype <> 'trigger'::regtype
		and not exists (select from pg_dist_object o where o.objid = p.oid and o.distribution_argument_index = 0)`
	require.Zero(t, pgtest.Value[int](db, unregistered))

	// A new overload has no registration until the next migration.
	db.Exec(`create function autopost.get_channel(p_workspace_id text, p_new int) returns int language plpgsql security definer as 'begin return 1; end';
		alter function autopost.get_channel(text, int) owner to autopost_owner`)
	require.Equal(t, 1, pgtest.Value[int](db, unregistered))
	distributed := pgtest.Value[int](db, `select count(*)::int from pg_dist_partition`)
	require.NoError(t, schema.Migrate(t.Context(), db.URL("")))
	require.Zero(t, pgtest.Value[int](db, unregistered))
	require.Equal(t, distributed, pgtest.Value[int](db, `select count(*)::int from pg_dist_partition`), "a table is distributed once")
}

func TestMigrateRefusesAWorker(t *testing.T) {
	db := pgtest.NewAlone(t)
	db.Exec(citusStandIn)
	db.Exec(`create or replace function pg_catalog.citus_is_coordinator() returns boolean language sql as 'select false'`)
	require.ErrorIs(t, schema.Migrate(t.Context(), db.URL("")), schema.ErrNotCoordinator)
}
