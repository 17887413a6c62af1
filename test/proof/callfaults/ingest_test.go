package callfaults

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/ingest"
	"autopost/internal/media"
	"autopost/internal/pg"
	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

// submissions registers media as the media store does.
type submissions struct{ *pg.Store }

// Register records a medium; the media store counts as having the object.
func (s submissions) Register(ctx context.Context, workspace string, o media.Origin) error {
	_, err := s.PutMediaOrigin(ctx, workspace, o)
	return err
}

// library has every medium, and is so slow that leases are renewed.
type library struct{}

func (library) Fetch(ctx context.Context, url string, kind autopost.MediaKind) (media.Origin, *autopost.Error) {
	select {
	case <-ctx.Done():
	case <-time.After(500 * time.Millisecond):
	}
	return media.Origin{BlobRef: fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(url))), OriginURL: url, ContentType: "image/png", Kind: kind, SizeBytes: 10, Width: 1, Height: 1}, nil
}

var submissionCalls = []string{
	"ready_submission_workspaces", "claim_submissions", "commit_submission", "extend_submission", "put_media_origin",
}

// Each submission is enqueued once.
func TestSubmissionsSurviveAnyFailedCall(t *testing.T) {
	t.Parallel()
	everyCall(t, 3, submissionCalls, func(t *testing.T, h *harness.Harness, c *calls) int {
		h.Channel("news", harness.Channel{ID: "channel", Platform: harness.Telegram})
		h.Endpoint("news", "cms", "secret-cms")
		h.Exec(`update autopost.settings set value = '1' where key = 'submission_lease_seconds'`)
		for n := range 2 {
			h.Exec(`select autopost.receive_push('news', 'cms', jsonb_build_array(jsonb_build_object('source_ref', $1::int::text, 'text', 'Post ' || $1::int,
				'media', jsonb_build_array(jsonb_build_object('type', 'image', 'url', 'https://example.org/' || $1::int)))))`, n)
		}
		s := submissions{c.db}
		worker, err := ingest.NewWorker(ingest.Config{Store: c.db, Origins: s, Fetcher: library{}, RunID: "worker",
			Interval: 200 * time.Millisecond, Log: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		end := serve(t, worker.Run)
		h.UntilTrue(`select not exists (select 1 from autopost.submissions where status = 'fetching')`)
		end()
		require.Equal(t, []string{"enqueued", "enqueued"}, pgtest.Column[string](h.DB, `select status from autopost.submissions`))
		eachOnce(t, h, 2)
		return 0
	})
}

// A post goes to each of its channels once.
func TestFanOutSurvivesAnyFailedCall(t *testing.T) {
	t.Parallel()
	everyCall(t, 3, []string{"ready_fanout_workspaces", "run_fanout"}, func(t *testing.T, h *harness.Harness, c *calls) int {
		const channels, posts = 3, 2
		for n := range channels {
			h.Channel("news", harness.Channel{ID: fmt.Sprint("channel-", n), Platform: harness.Telegram})
		}
		h.Endpoint("news", "cms", "secret-cms")
		h.Exec(`update autopost.settings set value = '1' where key = 'fanout_chunk_channels'`)
		for n := range posts {
			h.Exec(`select autopost.enqueue_messages_and_deliveries('news', 'cms', 'api', jsonb_build_object('text', 'Post ' || $1::int))`, n)
		}
		worker, err := ingest.NewFanoutWorker(ingest.FanoutConfig{Store: c.db, Interval: 100 * time.Millisecond, Log: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		end := serve(t, worker.Run)
		h.UntilTrue(`select not exists (select 1 from autopost.fanout_jobs where status = 'running')`)
		end()
		eachOnce(t, h, channels*posts)
		return 0
	})
}

// eachOnce checks that so many deliveries are queued, and that each channel has each text once.
func eachOnce(t *testing.T, h *harness.Harness, deliveries int) {
	t.Helper()
	require.Equal(t, deliveries, pgtest.Value[int](h.DB, `select count(*)::int from autopost.deliveries where status = 'queued'`))
	require.Equal(t, deliveries, pgtest.Value[int](h.DB, `select count(distinct (d.channel_id, m.payload ->> 'text'))::int
		from autopost.deliveries d join autopost.messages m using (workspace_id, message_id)`))
	require.Equal(t, deliveries, pgtest.Value[int](h.DB, `select count(*)::int from autopost.deliveries`))
	h.Verified()
}
