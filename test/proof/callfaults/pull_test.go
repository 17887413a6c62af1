package callfaults

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/ingest/pull"
	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

// page has so many items at each poll, more than fit into one chunk.
type page int

func (p page) Fetch(context.Context, pull.Source) (pull.Batch, error) {
	var batch pull.Batch
	for n := range int(p) {
		batch.Cursor = json.RawMessage(fmt.Sprintf(`{"n": %d}`, n+1))
		batch.Items = append(batch.Items, pull.Item{SourceRef: fmt.Sprint(n), Payload: pull.Payload{Text: fmt.Sprint("Item ", n)}, Cursor: batch.Cursor})
	}
	return batch, nil
}

var pullCalls = []string{
	"ready_sources", "claim_sources", "ingest_pull_chunk", "set_pull_cursor", "fail_poll", "start_ingest_run", "finish_ingest_run",
}

// Each item of a source is enqueued once, and the cursor moves behind all of them.
func TestPullSurvivesAnyFailedCall(t *testing.T) {
	t.Parallel()
	everyCall(t, 3, pullCalls, func(t *testing.T, h *harness.Harness, c *calls) int {
		const items = page(60)
		h.Channel("news", harness.Channel{ID: "channel", Platform: harness.Telegram})
		h.Exec(`update autopost.settings set value = '1' where key = 'pull_lease_seconds'`)
		h.Exec(`insert into autopost.pull_sources (workspace_id, source_id, kind, config_json) values ('news', 'wire', 'rss', '{"url": "https://example.org/", "interval_seconds": 1}')`)
		h.Exec(`insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, source_id) values ('news', 'wire', 'pull_source', 'wire')`)
		loop, err := pull.NewLoop(pull.Config{Store: c.db, RunID: "run", Fetchers: map[string]pull.Fetcher{"rss": items}, ChunkSize: 50,
			Log: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		end := serve(t, loop.Run)
		h.UntilTrue(`select (select cursor_json ->> 'n' = $1::int::text and failures = 0 from autopost.pull_cursors)
			and exists (select 1 from autopost.ingest_runs where kind = 'pull' and source_id is null and finished_at is not null)`, int(items))
		end()
		require.Equal(t, int(items), pgtest.Value[int](h.DB, `select count(*)::int from autopost.pull_receipts`))
		eachOnce(t, h, int(items))
		return 0
	})
}
