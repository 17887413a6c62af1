package crash

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim/feeds"
	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

// stops are the places at which a lock stops a poll before the kill, with the call that waits.
var stops = []struct{ name, lock, call string }{
	{"fetched", "", "ingest_pull_chunk"},
	{"in a chunk, all of it written", `select 1 from autopost.channel_gates for update`, "ingest_pull_chunk"},
	{"a chunk committed, before its cursor and the next", `select 1 from autopost.pull_cursors for no key update`, "set_pull_cursor"},
}

// The daemon is killed at each step of a poll. Its session ends with it or completes the call. No item is
// skipped, and no item arrives twice.
func TestKilledWhilePulling(t *testing.T) {
	t.Parallel()
	const perRound = 60 // two chunks
	h := harness.New(t)
	random := rand.New(rand.NewPCG(seed, 3))
	h.Workspace("news")
	h.Channel("news", harness.Channel{ID: "channel", Platform: harness.Telegram, Parallel: 8})
	h.Exec(`update autopost.channels set paused_until = now() + interval '1 hour'`) // this test is not about sending
	h.Exec(`update autopost.settings set value = '2' where key = 'pull_lease_seconds'`)
	items := 1
	publish := func() {
		raw, err := feeds.RSS{Items: items}.Document()
		require.NoError(t, err)
		h.World.Feeds.Set("wire", "application/rss+xml", raw)
	}
	publish()
	h.Exec(`insert into autopost.pull_sources (workspace_id, source_id, kind, config_json)
		values ('news', 'wire', 'rss', jsonb_build_object('url', $1::text, 'interval_seconds', 1, 'backfill_items', 1))`, h.WorldURL+"/feeds/wire")
	h.Exec(`insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, source_id) values ('news', 'wire', 'pull_source', 'wire')`)
	taken := func() {
		h.Until("every item is taken", func() bool {
			return pgtest.Value[int](h.DB, `select count(*)::int from autopost.deliveries`) >= items
		})
	}
	waits := func(by uint32, call string) {
		h.UntilTrue(`select exists (select 1 from pg_stat_activity a where a.datname = current_database() and a.application_name = 'autopost'
			and a.query like '%' || $1 || '%' and $2::int = any (pg_blocking_pids(a.pid)))`, call, int(by))
	}
	variables := []string{"PULL_CHUNK_SIZE=50", "MONITOR_INTERVAL_SECONDS=1"}
	d := h.Serve(variables...)
	taken()
	for _, round := range random.Perm(2 * len(stops)) {
		stop, ends := stops[round/2], round%2 == 0
		source, holder := h.Session("source", ""), h.Session("holder", "")
		source.Exec(`begin`)
		source.Exec(`select 1 from autopost.pull_sources for no key update`)
		items += perRound
		publish()
		waits(source.PID(), "ingest_pull_chunk")
		holder.Exec(`begin`)
		if stop.lock != "" {
			holder.Exec(stop.lock)
			source.Exec(`rollback`)
			waits(holder.PID(), stop.call)
		}
		d.Kill()
		if ends {
			h.Exec(`select pg_terminate_backend(a.pid) from pg_stat_activity a where a.datname = current_database() and a.application_name = 'autopost'`)
			h.UntilTrue(`select not exists (select 1 from pg_stat_activity a where a.datname = current_database() and a.application_name = 'autopost')`)
		}
		source.Exec(`rollback`)
		holder.Exec(`rollback`)
		t.Logf("killed when %s; its session ended: %t", stop.name, ends)
		d = h.Serve(variables...)
		taken()
	}
	h.Exec(`update autopost.channels set paused_until = null`)
	h.Drained("news")
	require.Equal(t, harness.Totals{Deliveries: items, Sent: items}, h.Judge("news"))
	require.Equal(t, map[string]any{"texts": float64(items), "messages": float64(items), "receipts": float64(items)}, h.JSON(`select jsonb_build_object(
		'texts', (select count(distinct rendered_text) from autopost.deliveries), 'messages', (select count(*) from autopost.messages),
		'receipts', (select count(*) from autopost.pull_receipts))`))
	h.Verified()
}
