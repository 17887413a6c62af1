package pg

import (
	"context"
	"fmt"
)

// clusterDiagnoses are the checks of a node of a Citus cluster.
var clusterDiagnoses = []diagnosis{
	{"cluster", `select split_part(e.extversion, '.', 1)::int >= 13, 'Citus ' || e.extversion || ', '
		|| case when citus_is_coordinator() then 'coordinator' else 'worker' end || ' of ' || (select count(*) from pg_dist_node n where n.isactive) || ' nodes'
		from pg_extension e where e.extname = 'citus'`,
		"upgrade to Citus 13 or newer"},
	{"cluster nodes", `select count(*) filter (where not r.success) = 0, coalesce('no answer from ' || string_agg(n.nodename || ':' || n.nodeport, ', ' order by n.nodeid) filter (where not r.success), 'all answer')
		from run_command_on_all_nodes('select 1') r join pg_dist_node n on n.nodeid = r.nodeid`,
		"start the node, and check that the role autopost_engine may log in from this node (pg_hba.conf); until then its workspaces wait"},
	{"cluster tables", `select count(*) = 0, coalesce(string_agg(c.relname, ', ' order by c.relname) || ': not on all nodes', 'all on the nodes') from pg_class c
		where c.relnamespace = to_regnamespace('autopost') and c.relkind in ('r', 'p') and not c.relispartition and c.relname <> 'schema_migrations'
		and not relation_is_a_known_shard(c.oid) and not exists (select 1 from pg_dist_partition p where p.logicalrelid = c.oid)
		and exists (select 1 from run_command_on_all_nodes(format('select to_regclass(%L) is not null', 'autopost.' || c.relname)) r where r.success and r.result <> 't')`,
		"run autopost migrate with AUTOPOST_COORDINATOR_URL and all nodes up"},
	{"cluster functions", `select count(*) = 0, case when count(*) = 0 then 'all registered' else count(*) || ' run on the wrong node: ' || min(p.proname) end from pg_proc p
		left join pg_dist_object o on o.classid = 'pg_proc'::regclass and o.objid = p.oid
		where p.pronamespace = to_regnamespace('autopost') and p.prosecdef and p.prorettype <> 'trigger'::regtype and p.proargnames[1] = 'p_workspace_id'
		and o.distribution_argument_index is null`,
		"run autopost migrate with AUTOPOST_COORDINATOR_URL and all nodes up"},
	{"cluster settings", `select count(*) = 0, coalesce('missing: ' || string_agg(distinct s.name || ' on ' || n.nodename || ':' || n.nodeport, ', '), 'set on all nodes')
		from unnest('{citus.allow_nested_distributed_execution,citus.enable_unsafe_triggers}'::text[]) s (name)
		cross join lateral run_command_on_all_nodes(format('select current_setting(%L)', s.name)) r
		join pg_dist_node n on n.nodeid = r.nodeid
		where r.success and r.result <> 'on'`,
		"run autopost migrate with AUTOPOST_COORDINATOR_URL as a superuser and all nodes up"},
}

// diagnoseCluster returns the checks of a Citus cluster; none for a database without it.
func (s *Store) diagnoseCluster(ctx context.Context) ([]diagnosis, error) {
	var clustered bool
	if err := s.calls.QueryRow(ctx, `select exists (select 1 from pg_extension e where e.extname = 'citus')`).Scan(&clustered); err != nil {
		return nil, fmt.Errorf("check cluster: %w", err)
	}
	if !clustered {
		return nil, nil
	}
	return clusterDiagnoses, nil
}
