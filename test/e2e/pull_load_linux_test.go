package e2e

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim/feeds"
	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

const (
	feedItems = 100
	// mostResident is what the daemon may take while it polls, in KiB.
	mostResident = 64 << 10
)

var highWater = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// Many feeds that all have news are polled in a few calls each, not in one an item,
// and in little memory. AUTOPOST_LONG=1 asks for the full size.
func TestManyFeedsAtOnce(t *testing.T) {
	t.Parallel()
	many := 10
	if pgtest.Long() {
		many = 200
	}
	h := harness.New(t)
	h.Workspace("news")
	h.Channel("news", harness.Channel{ID: "channel", Platform: harness.Telegram})
	h.Exec(`update autopost.channels set paused_until = now() + interval '1 day'`) // this is not about sending
	raw, err := feeds.RSS{Items: feedItems}.Document()
	require.NoError(t, err)
	for n := range many {
		h.World.Feeds.Set(fmt.Sprint("feed-", n), "application/rss+xml", raw)
	}
	h.Exec(`insert into autopost.pull_sources (workspace_id, source_id, kind, config_json)
		select 'news', 'feed-' || n, 'rss', jsonb_build_object('url', $1 || n, 'interval_seconds', 3600, 'backfill_items', 1000, 'template', 'feed ' || n || ': {title}')
		from generate_series(0, $2::int - 1) n`, h.WorldURL+"/feeds/feed-", many)
	h.Exec(`insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, source_id)
		select 'news', s.source_id, 'pull_source', s.source_id from autopost.pull_sources s`)
	h.Exec(`do $$begin execute format('alter database %I set track_functions = ''pl''', current_database()); end$$`)
	before := time.Now()
	d := h.Serve()
	h.UntilTrue(`select count(*) = $1 from autopost.pull_cursors where last_poll_at is not null`, many)
	took := pgtest.Value[float64](h.DB, `select extract(epoch from max(last_poll_at) - $1)::float8 from autopost.pull_cursors`, before)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.PID()))
	require.NoError(t, err)
	resident, err := strconv.Atoi(highWater.FindStringSubmatch(string(status))[1])
	require.NoError(t, err)
	require.Equal(t, many*feedItems, pgtest.Value[int](h.DB, `select count(*)::int from autopost.deliveries`))
	require.Zero(t, d.Stop()) // a session reports its calls at the latest when it ends
	calls := func(name string) int {
		return pgtest.Value[int](h.DB, `select coalesce(sum(calls), 0)::int from pg_stat_user_functions where schemaname = 'autopost' and funcname = $1`, name)
	}
	h.UntilTrue(`select coalesce(sum(calls), 0) >= $1 from pg_stat_user_functions where funcname = 'set_pull_cursor'`, many)
	t.Logf("%d feeds of %d items in %.1f s from the start of the daemon; at most %d MiB resident; calls: claim_sources %d, ingest_pull_chunk %d, set_pull_cursor %d",
		many, feedItems, took, resident>>10, calls("claim_sources"), calls("ingest_pull_chunk"), calls("set_pull_cursor"))
	require.Equal(t, many, calls("ingest_pull_chunk"))
	require.Equal(t, many, calls("set_pull_cursor"))
	require.Less(t, resident, mostResident, "KiB")
}
