//go:build citus

package citus

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/dispatch"
	"autopost/internal/pg"
	"autopost/internal/testing/pgtest"
)

const (
	costRounds = 12
	costBatch  = 100
	// emptyClaims is the number of claims without a delivery in a round.
	emptyClaims = 20
)

// measured is one database whose calls are measured.
type measured struct {
	name  string
	db    *pgtest.DB
	store *pg.Store
	// servers are the database on each node.
	servers []*pgtest.DB
	// before and after surround each call; nil: nothing does.
	before func()
	after  func(call string)

	// perDelivery and perEmptyClaim are the processor time of the server in microseconds, a value for each round;
	// emptyClaim is the time until the answer in milliseconds.
	perDelivery, perEmptyClaim, emptyClaim []float64
}

// TestCost measures a worker of the cluster against plain PostgreSQL in one interleaved run, for docs/operate/scale.md.
// Only its ratios say something on a shared machine, so it prints them and asserts that the work was done.
func TestCost(t *testing.T) {
	plain, cluster := pgtest.NewAlone(t), pgtest.New(t)
	require.True(t, cluster.OnCluster(), "make test-citus sets AUTOPOST_TEST_CITUS")
	nodes := []*pgtest.DB{cluster.OnNode(0), cluster.OnNode(1), cluster.OnNode(2)}
	subjects := []*measured{
		{name: "plain", db: plain, servers: []*pgtest.DB{plain}},
		{name: "coordinator", db: cluster, servers: nodes},
		{name: "worker", db: cluster, servers: nodes},
	}
	for n, m := range subjects {
		address := m.db.URL("engine")
		if n < 2 {
			furnish(m.db)
		} else {
			node := pgtest.Value[int](cluster, `select p.groupid::int from pg_dist_placement p
				where p.shardid = get_shard_id_for_distribution_column('autopost.workspaces', 'w')`)
			address = cluster.NodeURL(node, "engine")
		}
		store, err := pg.Connect(t.Context(), pg.Options{URL: address, MaxConns: 1})
		require.NoError(t, err)
		t.Cleanup(store.Close)
		m.store = store
	}
	for round := range costRounds + 2 { // the first rounds fill caches
		for _, m := range subjects {
			m.round(t, round)
		}
	}
	base := median(subjects[0].perDelivery)
	for _, m := range subjects {
		t.Logf("%-11s %7.0f us of processor time for a delivery in a batch of %d (%.2f of plain); an empty claim: %.2f ms, %.0f us of processor time",
			m.name, median(m.perDelivery), costBatch, median(m.perDelivery)/base, median(m.emptyClaim), median(m.perEmptyClaim))
	}
}

// furnish makes a workspace with a channel for each delivery of a batch.
func furnish(db *pgtest.DB) {
	db.Exec(`select autopost.set_event_strictness(false)`) // an installation has no foreign keys of events, the tests do
	db.Exec(`insert into autopost.workspaces (workspace_id) values ('w')`)
	db.Exec(`insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, secret_hash) values ('w', 'in', 'webhook_push', repeat('a', 64))`)
	db.Exec(`insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref) values ('w', 'bot', 'telegram', 'env:TOKEN')`)
	for c := range costBatch {
		db.Exec(`insert into autopost.channels (workspace_id, channel_id, platform, target_id, auth_ref, rate_group, rate_rps, max_parallel)
			values ('w', $1, 'telegram', $2, 'bot', 'bot', null, 4)`, fmt.Sprintf("channel-%03d", c), strconv.Itoa(-1000-c))
	}
	db.Exec(`insert into autopost.platform_limits (workspace_id, platform, rate_group, rate_rps) values ('w', 'telegram', 'bot', null)
		on conflict (workspace_id, platform, rate_group) do update set rate_rps = null`)
}

// TestStatementsOfTheHotPath counts the statements of each call: a cluster plans every one of them again. The functions are
// the same on plain PostgreSQL, which counts them. docs/operate/scale.md has the figures.
func TestStatementsOfTheHotPath(t *testing.T) {
	plain := pgtest.NewAlone(t)
	plain.StopServer()
	plain.Configure("shared_preload_libraries=pg_stat_statements", "pg_stat_statements.track=all")
	plain.StartServer()
	plain.Exec(`create extension pg_stat_statements schema public`)
	furnish(plain)
	store, err := pg.Connect(t.Context(), pg.Options{URL: plain.URL("engine"), MaxConns: 1})
	require.NoError(t, err)
	t.Cleanup(store.Close)
	m := &measured{name: "plain", db: plain, store: store, servers: []*pgtest.DB{plain}}
	counted := 0
	statements := func() int {
		return pgtest.Value[int](plain, `select coalesce(sum(s.calls), 0)::int from public.pg_stat_statements s
			join pg_database d on d.oid = s.dbid and d.datname = current_database()
			join pg_roles r on r.oid = s.userid and r.rolname = 'autopost_owner'`)
	}
	counts := map[string]int{}
	m.before = func() { counted = statements() }
	m.after = func(call string) { counts[call] = statements() - counted }
	for round := range 2 { // the first one fills caches
		m.round(t, round)
	}
	for _, call := range []string{"claim_and_start", "start_call_batch", "commit_outcome_batch", "empty claim"} {
		require.Positive(t, counts[call], call)
		t.Logf("%-20s %4d statements", call, counts[call])
	}
}

// call makes one call of the hot path.
func (m *measured) call(name string, run func()) {
	if m.before != nil {
		m.before()
		defer m.after(name)
	}
	run()
}

func (m *measured) round(t *testing.T, round int) {
	t.Helper()
	ctx := t.Context()
	m.db.Exec(`select * from autopost.receive_push('w', 'in', $1)`, fmt.Sprintf(`[{"source_ref": "%s-%d", "text": "post %d of %s"}]`, m.name, round, round, m.name))
	began := m.processorTime(t)
	var claimed []dispatch.Claimed
	var starts []dispatch.Start
	var commits []dispatch.Commit
	var err error
	m.call("claim_and_start", func() { claimed, err = m.store.ClaimAndStart(ctx, "w", "run-"+m.name, costBatch, nil, nil) })
	require.NoError(t, err)
	require.Len(t, claimed, costBatch)
	claims, results := make([]dispatch.Claim, costBatch), make([]dispatch.ClaimResult, costBatch)
	for n, c := range claimed {
		claims[n] = dispatch.Claim{DeliveryID: c.DeliveryID, ClaimToken: c.ClaimToken}
		results[n] = dispatch.ClaimResult{DeliveryID: c.DeliveryID, ClaimToken: c.ClaimToken, Outcome: autopost.Outcome{OK: true, ProviderMessageID: strconv.Itoa(round*costBatch + n + 1)}}
	}
	m.call("start_call_batch", func() { starts, err = m.store.StartCallBatch(ctx, "w", claims) })
	require.NoError(t, err)
	m.call("commit_outcome_batch", func() { commits, err = m.store.CommitOutcomeBatch(ctx, "w", results) })
	require.NoError(t, err)
	ended := m.processorTime(t)
	for n := range costBatch {
		require.True(t, starts[n].Applied && commits[n].Applied)
	}
	var waits []float64
	for range emptyClaims {
		asked := time.Now()
		var none []dispatch.Claimed
		m.call("empty claim", func() { none, err = m.store.ClaimAndStart(ctx, "w", "run-"+m.name, costBatch, nil, nil) })
		require.NoError(t, err)
		require.Empty(t, none)
		waits = append(waits, float64(time.Since(asked).Microseconds())/1000)
	}
	if round >= 2 {
		m.perDelivery = append(m.perDelivery, (ended-began)/costBatch)
		m.perEmptyClaim = append(m.perEmptyClaim, (m.processorTime(t)-ended)/emptyClaims)
		m.emptyClaim = append(m.emptyClaim, median(waits))
	}
}

// processorTime is that of all server processes of the database, on all nodes, in microseconds.
func (m *measured) processorTime(t *testing.T) (total float64) {
	t.Helper()
	for _, server := range m.servers {
		for _, pid := range pgtest.Column[int](server, `select a.pid from pg_stat_activity a
			where a.datname = current_database() and a.pid <> pg_backend_pid() and a.application_name not in ('pgtest', 'Citus Maintenance Daemon')`) {
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
			if os.IsNotExist(err) {
				continue
			}
			require.NoError(t, err)
			nanoseconds, err := strconv.ParseFloat(strings.Fields(string(text))[0], 64)
			require.NoError(t, err)
			total += nanoseconds / 1000
		}
	}
	return total
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
