package nth

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/ingest/pull"
	"autopost/internal/pg"
	"autopost/internal/pgtest"
	"autopost/test/house"
)

// sources are the calls of who polls sources.
type sources struct{ *calls }

func (s sources) ReadySources(ctx context.Context) ([]string, *time.Duration, error) {
	type ready struct {
		workspaces []string
		nextIn     *time.Duration
	}
	answer, err := through(s.calls, "ready_sources", func() (ready, error) {
		workspaces, nextIn, err := s.db.ReadySources(ctx)
		return ready{workspaces, nextIn}, err
	})
	return answer.workspaces, answer.nextIn, err
}

func (s sources) ListDueSources(ctx context.Context, workspace string, limit int) ([]pull.Source, error) {
	return through(s.calls, "list_due_sources", func() ([]pull.Source, error) {
		list, err := s.db.ListDueSources(ctx, workspace, limit)
		return convert(list, func(x pg.Source) pull.Source { return pull.Source(x) }), err
	})
}

func (s sources) IngestPullChunk(ctx context.Context, workspace, sourceID, endpointID string, items json.RawMessage) (pull.ChunkAnswer, error) {
	return through(s.calls, "ingest_pull_chunk", func() (pull.ChunkAnswer, error) {
		a, err := s.db.IngestPullChunk(ctx, workspace, sourceID, endpointID, items)
		return pull.ChunkAnswer(a), err
	})
}

func (s sources) SetPullCursor(ctx context.Context, workspace, sourceID string, cursor json.RawMessage) error {
	return done(s.calls, "set_pull_cursor", func() error { return s.db.SetPullCursor(ctx, workspace, sourceID, cursor) })
}

func (s sources) FailPoll(ctx context.Context, workspace, sourceID string, f pull.Failure) error {
	return done(s.calls, "fail_poll", func() error {
		return s.db.FailPoll(ctx, workspace, sourceID, pg.PollFailure{Code: f.Code, Message: f.Message})
	})
}

func (s sources) StartIngestRun(ctx context.Context, workspace, kind, endpointID, sourceID string) (string, error) {
	return through(s.calls, "start_ingest_run", func() (string, error) { return s.db.StartIngestRun(ctx, workspace, kind, endpointID, sourceID) })
}

func (s sources) FinishIngestRun(ctx context.Context, workspace, runID string, stats json.RawMessage) error {
	return done(s.calls, "finish_ingest_run", func() error { return s.db.FinishIngestRun(ctx, workspace, runID, stats) })
}

// page shows so many items at every look, more than go into one chunk.
type page int

func (p page) Fetch(context.Context, pull.Source) (pull.Batch, error) {
	var batch pull.Batch
	for n := range int(p) {
		batch.Cursor = json.RawMessage(fmt.Sprintf(`{"n": %d}`, n+1))
		batch.Items = append(batch.Items, pull.Item{SourceRef: fmt.Sprint(n), Payload: pull.Payload{Text: fmt.Sprint("Item ", n)}, Cursor: batch.Cursor})
	}
	return batch, nil
}

// Each item of a source comes in once, and the cursor gets behind all of them, whichever
// call fails.
func TestTheNthCallOfAPullFails(t *testing.T) {
	t.Parallel()
	everyCall(t, 3, func(t *testing.T, h *house.House, c *calls) int {
		const items = page(60)
		h.Channel("news", house.Channel{ID: "channel", Platform: house.Telegram})
		h.Exec(`update autopost.settings set value = '1' where key = 'pull_lease_seconds'`)
		h.Exec(`insert into autopost.pull_sources (workspace_id, source_id, kind, config_json) values ('news', 'wire', 'rss', '{"url": "https://example.org/", "interval_seconds": 1}')`)
		h.Exec(`insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, source_id) values ('news', 'wire', 'pull_source', 'wire')`)
		s := sources{c}
		loop, err := pull.NewLoop(pull.Config{Sources: s, Chunks: s, Failures: s, Runs: s, Fetchers: map[string]pull.Fetcher{"rss": items}, ChunkSize: 50,
			Log: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		end := serve(t, loop.Run)
		h.UntilTrue(patience, `select (select cursor_json ->> 'n' = $1::int::text and failures = 0 from autopost.pull_cursors)
			and exists (select 1 from autopost.ingest_runs where kind = 'pull' and source_id is null and finished_at is not null)`, int(items))
		end()
		require.Equal(t, int(items), pgtest.Value[int](h.DB, `select count(*)::int from autopost.pull_receipts`))
		eachOnce(t, h, int(items))
		return 0
	})
}
