package nth

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/ingest"
	"autopost/internal/media"
	"autopost/internal/pg"
	"autopost/internal/pgtest"
	"autopost/test/house"
)

// submissions are the calls of who fetches media.
type submissions struct{ *calls }

func (s submissions) ReadySubmissionWorkspaces(ctx context.Context, limit int) ([]string, error) {
	return through(s.calls, "ready_submission_workspaces", func() ([]string, error) { return s.db.ReadySubmissionWorkspaces(ctx, limit) })
}

func (s submissions) ClaimSubmissions(ctx context.Context, workspace, runID string, limit int) ([]ingest.Submission, error) {
	return through(s.calls, "claim_submissions", func() ([]ingest.Submission, error) {
		list, err := s.db.ClaimSubmissions(ctx, workspace, runID, limit)
		return convert(list, func(x pg.Submission) ingest.Submission { return ingest.Submission(x) }), err
	})
}

func (s submissions) CommitSubmission(ctx context.Context, workspace, submissionID, claimToken string, outcome json.RawMessage) (json.RawMessage, error) {
	return through(s.calls, "commit_submission", func() (json.RawMessage, error) {
		return s.db.CommitSubmission(ctx, workspace, submissionID, claimToken, outcome)
	})
}

func (s submissions) ExtendSubmission(ctx context.Context, workspace, submissionID, claimToken string) (bool, error) {
	return through(s.calls, "extend_submission", func() (bool, error) { return s.db.ExtendSubmission(ctx, workspace, submissionID, claimToken) })
}

// Register records a medium, of which the origin is taken to hold the object.
func (s submissions) Register(ctx context.Context, workspace string, o media.Origin) error {
	return done(s.calls, "put_media_origin", func() error {
		_, err := s.db.PutMediaOrigin(ctx, workspace, pg.MediaOrigin{
			BlobRef: o.BlobRef, OriginURL: o.OriginURL, ContentType: o.ContentType, Kind: string(o.Kind), SizeBytes: o.SizeBytes, Width: o.Width, Height: o.Height,
		})
		return err
	})
}

// library has whatever is asked for, and takes so long that leases are renewed.
type library struct{}

func (library) Fetch(ctx context.Context, url string, kind autopost.MediaKind) (media.Origin, *autopost.Error) {
	select {
	case <-ctx.Done():
	case <-time.After(500 * time.Millisecond):
	}
	return media.Origin{BlobRef: fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(url))), OriginURL: url, ContentType: "image/png", Kind: kind, SizeBytes: 10, Width: 1, Height: 1}, nil
}

// A post that was taken comes out once, whichever call fails while its media are fetched.
func TestTheNthCallOfSubmissionsFails(t *testing.T) {
	t.Parallel()
	everyCall(t, 3, func(t *testing.T, h *house.House, c *calls) int {
		h.Channel("news", house.Channel{ID: "channel", Platform: house.Telegram})
		h.Endpoint("news", "cms", "secret-cms")
		h.Exec(`update autopost.settings set value = '1' where key = 'submission_lease_seconds'`)
		for n := range 2 {
			h.Exec(`select autopost.receive_push('news', 'cms', jsonb_build_array(jsonb_build_object('source_ref', $1::int::text, 'text', 'Post ' || $1::int,
				'media', jsonb_build_array(jsonb_build_object('type', 'image', 'url', 'https://example.org/' || $1::int)))))`, n)
		}
		s := submissions{c}
		worker, err := ingest.NewWorker(ingest.Config{Queue: s, Origins: s, Fetcher: library{}, RunID: "worker",
			Interval: 200 * time.Millisecond, Log: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		end := serve(t, worker.Run)
		h.UntilTrue(patience, `select not exists (select 1 from autopost.submissions where status = 'fetching')`)
		end()
		require.Equal(t, []string{"enqueued", "enqueued"}, pgtest.Column[string](h.DB, `select status from autopost.submissions`))
		eachOnce(t, h, 2)
		return 0
	})
}

// fanouts are the calls of who works off posts that go to very many channels.
type fanouts struct{ *calls }

func (f fanouts) ReadyFanoutWorkspaces(ctx context.Context, limit int) ([]string, error) {
	return through(f.calls, "ready_fanout_workspaces", func() ([]string, error) { return f.db.ReadyFanoutWorkspaces(ctx, limit) })
}

func (f fanouts) RunFanout(ctx context.Context, workspace string, limit int) (ingest.Fanout, error) {
	return through(f.calls, "run_fanout", func() (ingest.Fanout, error) {
		went, err := f.db.RunFanout(ctx, workspace, limit)
		return ingest.Fanout(went), err
	})
}

// A post goes to each of its channels once, whichever call fails while it is fanned out.
func TestTheNthCallOfAFanOutFails(t *testing.T) {
	t.Parallel()
	everyCall(t, 3, func(t *testing.T, h *house.House, c *calls) int {
		const channels, posts = 3, 2
		for n := range channels {
			h.Channel("news", house.Channel{ID: fmt.Sprint("channel-", n), Platform: house.Telegram})
		}
		h.Endpoint("news", "cms", "secret-cms")
		h.Exec(`update autopost.settings set value = '1' where key = 'fanout_chunk_channels'`)
		for n := range posts {
			h.Exec(`select autopost.enqueue_messages_and_deliveries('news', 'cms', 'api', jsonb_build_object('text', 'Post ' || $1::int))`, n)
		}
		worker, err := ingest.NewFanoutWorker(ingest.FanoutConfig{Jobs: fanouts{c}, Interval: 100 * time.Millisecond, Log: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		end := serve(t, worker.Run)
		h.UntilTrue(patience, `select not exists (select 1 from autopost.fanout_jobs where status = 'running')`)
		end()
		eachOnce(t, h, channels*posts)
		return 0
	})
}

// eachOnce judges what came in and waits: so many deliveries, each of its text once a channel.
func eachOnce(t *testing.T, h *house.House, deliveries int) {
	t.Helper()
	require.Equal(t, deliveries, pgtest.Value[int](h.DB, `select count(*)::int from autopost.deliveries where status = 'queued'`))
	require.Equal(t, deliveries, pgtest.Value[int](h.DB, `select count(distinct (d.channel_id, m.payload ->> 'text'))::int
		from autopost.deliveries d join autopost.messages m using (workspace_id, message_id)`))
	require.Equal(t, deliveries, pgtest.Value[int](h.DB, `select count(*)::int from autopost.deliveries`))
	h.Verified()
}
