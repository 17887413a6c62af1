package db_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
	"autopost/internal/testing/posttest"
)

// A look for alerts reads what waits and what went wrong, not what was sent: counted by
// the rows that the tables gave, while each of 4000 channels has something due.
func TestLooksDoNotReadTheHistory(t *testing.T) {
	t.Parallel()
	rows := 20_000
	if pgtest.Long() {
		rows = 1_000_000
	}
	base := pgtest.New(t)
	posttest.Workspace(base, "w")
	base.Exec(`insert into autopost.channels (workspace_id, channel_id, platform, target_id, auth_ref, rate_group)
		select 'w', 'c' || n, 'telegram', '@' || n, 'bot', 'bot' from generate_series(0, 3999) n`)
	base.Exec(fmt.Sprintf(history, rows))
	base.Exec(`update autopost.channel_gates set ready_at = now()`)
	session := base.Session("monitor", "")
	for _, look := range []string{`autopost.check_alerts('w')`, `autopost.check_alerts('w')`, `autopost.check_installation()`, `autopost.claim_notices('w', 10)`} {
		session.Exec(`begin`)
		before := rowsRead(session)
		began := time.Now()
		session.Exec(`select ` + look)
		took := time.Since(began)
		read := rowsRead(session) - before
		session.Exec(`commit`)
		require.Less(t, read, int64(20_000), look)
		t.Logf("%s: %d rows read in %s, of a history of %d", look, read, took, rows)
	}
	require.True(t, pgtest.Value[bool](base, `select exists (select 1 from autopost.alerts where kind = 'dead')`), "there was something to see")
}

// The cost of a check, in pages, depends on the number of problems. The test has 4000 channels;
// all have due posts and are served.
func TestLookCostsWhatIsWrong(t *testing.T) {
	t.Parallel()
	base := pgtest.New(t)
	posttest.Workspace(base, "w")
	base.Exec(`insert into autopost.channels (workspace_id, channel_id, platform, target_id, auth_ref, rate_group)
		select 'w', 'c' || n, 'telegram', '@' || n, 'bot', 'bot' || n % 3 from generate_series(1, 4000) n`)
	posttest.Post(base, "w", "one")
	posttest.Post(base, "w", "two")
	for base.JSON(`select autopost.run_fanout('w', 2000)`)["status"] != "idle" {
	}
	base.Exec(`insert into autopost.platform_limits (workspace_id, platform, rate_group, rate_rps) select 'w', 'telegram', 'g' || n, 1 from generate_series(1, 2000) n`)
	base.Exec(`insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref) select 'w', 'x' || n, 'x', 'env:X' from generate_series(1, 2000) n`)
	base.Exec(`insert into autopost.pull_sources (workspace_id, source_id, kind) select 'w', 's' || n, 'rss' from generate_series(1, 2000) n`)
	base.Exec(`insert into autopost.submissions (workspace_id, submission_id, endpoint_id, kind, status, raw_payload, run_id, trace_id)
		select 'w', gen_random_uuid(), 'in', 'push', 'new', '{}', gen_random_uuid(), gen_random_uuid() from generate_series(1, 2000)`)
	base.Exec(`analyze`)
	look := base.Session("monitor", "engine")
	pagesOf(look, `select autopost.check_alerts('w')`) // plans, and fills the caches of the session
	quiet := pagesOf(look, `select autopost.check_alerts('w')`)
	t.Logf("nothing wrong: %v pages, the sweep of the gates %v", quiet, pagesOf(look, `select autopost.rearm_gates('w')`))
	require.Less(t, quiet, 560., "a plan reads a page of each index")
	require.Equal(t, 0, pgtest.Value[int](base, `select count(*)::int from autopost.alerts`))

	base.Exec(`update autopost.deliveries set not_before = now() - interval '1 hour' where channel_id in ('c7', 'c8')`)
	require.Equal(t, 0., base.JSON(`select autopost.rearm_gates('w')`)["rearmed"], "they are behind, their gates are as they should be")
	require.Less(t, pagesOf(look, `select autopost.check_alerts('w')`), 1000.)
	require.Equal(t, []string{"oldest_due"}, pgtest.Column[string](base, `select kind from autopost.alerts where ended_at is null`))
}

// pagesOf are the pages that a session touches for a query once its caches are filled.
func pagesOf(s *pgtest.Session, query string) float64 {
	pages(s, query)
	return pages(s, query)
}

// pages are those that a session touches for a query.
func pages(s *pgtest.Session, query string) float64 {
	root := s.Exec(`explain (analyze, buffers, format json) ` + query)[0][0].([]any)[0].(map[string]any)["Plan"].(map[string]any)
	return root["Shared Hit Blocks"].(float64) + root["Shared Read Blocks"].(float64)
}

// Each kind of alert is described in the manual.
func TestEveryAlertIsInTheManual(t *testing.T) {
	t.Parallel()
	manual, err := os.ReadFile("../docs/operate/alerts.md")
	require.NoError(t, err)
	for _, kind := range pgtest.Column[string](pgtest.New(t), `select kind from autopost.alert_kinds()`) {
		require.Contains(t, string(manual), "| `"+kind+"` |")
	}
}
