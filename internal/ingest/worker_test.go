package ingest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/media"
	"autopost/internal/worker"
)

// queue is a Store in memory: claimed submissions are removed, committed ones keep their outcome.
type queue struct {
	Store

	mu        sync.Mutex
	waiting   map[string][]Submission
	outcomes  map[string]string
	origins   []string
	away      error
	commitErr error
	refused   error
	renewed   int
	lost      bool
}

func (q *queue) ReadySubmissionWorkspaces(context.Context, int) ([]string, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var ready []string
	for workspace, list := range q.waiting {
		if len(list) > 0 {
			ready = append(ready, workspace)
		}
	}
	return ready, q.away
}

func (q *queue) ClaimSubmissions(_ context.Context, workspace, runID string, limit int) ([]Submission, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(limit, len(q.waiting[workspace]))
	claimed := q.waiting[workspace][:n]
	q.waiting[workspace] = q.waiting[workspace][n:]
	for i := range claimed {
		claimed[i].ClaimToken = "token-of-" + runID
	}
	return claimed, nil
}

func (q *queue) CommitSubmission(_ context.Context, workspace, id, token string, outcome json.RawMessage) (json.RawMessage, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.commitErr != nil {
		return nil, q.commitErr
	}
	q.outcomes[workspace+"/"+id+"/"+token] = string(outcome)
	return json.RawMessage(`{"applied":true}`), nil
}

func (q *queue) ExtendSubmission(context.Context, string, string, string) (bool, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.renewed++
	return !q.lost, nil
}

func (q *queue) Register(_ context.Context, workspace string, origin media.Origin) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.origins = append(q.origins, workspace+" "+origin.BlobRef)
	return q.refused
}

func (q *queue) add(workspace, id, payload string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting[workspace] = append(q.waiting[workspace], Submission{
		WorkspaceID: workspace, SubmissionID: id, Attempt: 1, RawPayload: json.RawMessage(payload),
		LeaseUntil: time.Now().Add(5 * time.Minute),
	})
}

func (q *queue) outcome(key string) string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.outcomes[key]
}

// web is a fetcher: the last part of a valid URL becomes the digest.
type web func(ctx context.Context, url string) *autopost.Error

func (w web) Fetch(ctx context.Context, url string, kind autopost.MediaKind) (media.Origin, *autopost.Error) {
	if w != nil {
		if failed := w(ctx, url); failed != nil {
			return media.Origin{}, failed
		}
	}
	name := url[strings.LastIndex(url, "/")+1:]
	return media.Origin{BlobRef: "sha256:" + name, Kind: kind, Filename: name}, nil
}

func newWorker(t *testing.T, q *queue, fetcher MediaFetcher, change func(*Config)) *Worker {
	t.Helper()
	q.waiting = map[string][]Submission{}
	q.outcomes = map[string]string{}
	cfg := Config{Store: q, Origins: q, Fetcher: fetcher, RunID: "run", Log: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&cfg)
	}
	w, err := NewWorker(cfg)
	require.NoError(t, err)
	return w
}

func TestSubmissionIsFetchedRegisteredAndCommitted(t *testing.T) {
	q := &queue{}
	w := newWorker(t, q, web(nil), nil)
	q.add("w", "1", `{"text":"x","media":[
		{"type":"image","url":"https://h/aa"}, {"type":"image","blob_ref":"sha256:bb","url":"https://h/bb"},
		{"type":"video","file_id":"BAAC","url":"https://h/cc"}, {"type":"video","url":"https://h/dd"}]}`)
	q.add("w", "2", `{"text":"no media after all"}`)
	q.add("w", "3", `{"media":[{"type":"file","url":"https://h/dir/ee.pdf"}, {"type":"image","attachment_token":"t"}]}`)
	w.runOnce(t.Context())

	require.JSONEq(t, `{"ok":true,"media":[{"index":0,"blob_ref":"sha256:aa"},{"index":3,"blob_ref":"sha256:dd"}]}`,
		q.outcome("w/1/token-of-run"))
	require.JSONEq(t, `{"ok":true}`, q.outcome("w/2/token-of-run"))
	require.JSONEq(t, `{"ok":true,"media":[{"index":0,"blob_ref":"sha256:ee.pdf","filename":"ee.pdf"}]}`, q.outcome("w/3/token-of-run"),
		"a file keeps its name")
	require.ElementsMatch(t, []string{"w sha256:aa", "w sha256:dd", "w sha256:ee.pdf"}, q.origins)
}

func TestFailedMediumFailsTheSubmission(t *testing.T) {
	q := &queue{}
	w := newWorker(t, q, web(func(_ context.Context, url string) *autopost.Error {
		if strings.HasSuffix(url, "/bad") {
			return &autopost.Error{Category: autopost.Transient, Scope: autopost.ScopeDelivery, Code: "media_fetch_503", Known: true,
				RetryAfterMS: 7000, Message: "h answered 503"}
		}
		return nil
	}), nil)
	q.add("w", "1", `{"media":[{"type":"image","url":"https://h/aa"},{"type":"image","url":"https://h/bad"}]}`)
	w.runOnce(t.Context())
	require.JSONEq(t, `{"ok":false,"error":{"category":"TRANSIENT","scope":"delivery","code":"media_fetch_503","known":true,
		"retry_after_ms":7000,"message":"media[1]: h answered 503"}}`, q.outcome("w/1/token-of-run"))
}

func TestUnreadableMediaIsPermanent(t *testing.T) {
	q := &queue{}
	w := newWorker(t, q, web(nil), nil)
	q.add("w", "1", `{"media":"picture"}`)
	w.runOnce(t.Context())
	require.Contains(t, q.outcome("w/1/token-of-run"), `"code":"validation_failed"`)
	require.Contains(t, q.outcome("w/1/token-of-run"), `"category":"PERMANENT"`)
}

func TestSlowWorkspaceDoesNotDelayOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		q := &queue{}
		w := newWorker(t, q, web(func(_ context.Context, url string) *autopost.Error {
			if strings.HasSuffix(url, "/slow") {
				<-release
			}
			return nil
		}), nil)
		q.add("slow", "1", `{"media":[{"type":"image","url":"https://h/slow"}]}`)
		_, _ = w.poll(t.Context())
		synctest.Wait()
		q.add("quick", "1", `{"media":[{"type":"image","url":"https://h/aa"}]}`)
		_, _ = w.poll(t.Context())
		synctest.Wait()
		require.NotEmpty(t, q.outcome("quick/1/token-of-run"))
		require.Empty(t, q.outcome("slow/1/token-of-run"))
		close(release)
		w.runs.Wait()
		require.NotEmpty(t, q.outcome("slow/1/token-of-run"))
	})
}

func TestRunSurvivesAnOutageAndWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wake := make(chan struct{})
		var log strings.Builder
		q := &queue{away: errors.New("connection refused")}
		w := newWorker(t, q, web(nil), func(c *Config) {
			c.Wake = wake
			c.Log = slog.New(slog.NewTextHandler(&log, nil))
		})
		ctx, cancel := context.WithCancel(t.Context())
		stopped := make(chan error, 1)
		go func() { stopped <- w.Run(ctx) }()

		<-time.After(21 * time.Second) // on the fake clock: failed polls
		synctest.Wait()
		require.Equal(t, 1, strings.Count(log.String(), "submissions.unavailable"), "an outage is logged once")
		q.mu.Lock()
		q.away = nil
		q.mu.Unlock()
		<-time.After(5 * time.Second)
		synctest.Wait()
		require.Contains(t, log.String(), "submissions.recovered")

		q.add("w", "1", `{"text":"x"}`)
		before := time.Now()
		wake <- struct{}{}
		synctest.Wait()
		require.NotEmpty(t, q.outcome("w/1/token-of-run"))
		require.Equal(t, before, time.Now(), "a wake-up starts a poll at once")
		cancel()
		require.NoError(t, <-stopped)
	})
}

func TestStopCommitsNoPartialWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{}
		w := newWorker(t, q, web(func(ctx context.Context, _ string) *autopost.Error {
			<-ctx.Done()
			return &autopost.Error{Category: autopost.Transient, Code: "media_fetch_timeout"}
		}), nil)
		q.add("w", "1", `{"media":[{"type":"image","url":"https://h/aa"}]}`)
		ctx, cancel := context.WithCancel(t.Context())
		stopped := make(chan error, 1)
		go func() { stopped <- w.Run(ctx) }()
		synctest.Wait()
		cancel()
		require.NoError(t, <-stopped)
		require.Empty(t, q.outcomes, "the next worker starts over after the lease")
	})
}

func TestBudgetEndsSlowMedia(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{}
		w := newWorker(t, q, web(func(ctx context.Context, _ string) *autopost.Error {
			<-ctx.Done()
			return &autopost.Error{Category: autopost.Transient, Scope: autopost.ScopeDelivery, Code: "media_fetch_timeout", Known: true}
		}), func(c *Config) { c.Budget = 100 * time.Second })
		q.add("w", "1", `{"media":[{"type":"image","url":"https://h/aa"}]}`)
		q.waiting["w"][0].LeaseUntil = time.Now().Add(39 * time.Second)
		began := time.Now()
		w.runOnce(t.Context())
		require.Contains(t, q.outcome("w/1/token-of-run"), "media_fetch_timeout")
		require.Equal(t, 100*time.Second, time.Since(began))
		require.Equal(t, 7, q.renewed, "whenever a third of the lease was over")

		q.renewed = 0
		q.add("w", "2", `{"media":[{"type":"image","url":"https://h/aa"}]}`)
		q.waiting["w"][0].LeaseUntil = time.Now().Add(-24 * time.Hour)
		w.runOnce(t.Context())
		require.Equal(t, 3, q.renewed, "a wrong local clock does not change the period")
	})
}

func TestLostLeaseEndsTheWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{lost: true}
		w := newWorker(t, q, web(func(ctx context.Context, _ string) *autopost.Error {
			<-ctx.Done()
			return &autopost.Error{Category: autopost.Transient, Code: "media_fetch_timeout"}
		}), nil)
		q.add("w", "1", `{"media":[{"type":"image","url":"https://h/aa"}]}`)
		began := time.Now()
		w.runOnce(t.Context())
		require.Equal(t, 30*time.Second, time.Since(began), "at the first renewal")
		require.Empty(t, q.outcomes, "another worker has the submission")
	})
}

func TestRefusedOriginFailsTheSubmission(t *testing.T) {
	for code, refused := range map[string]error{
		`"category":"PERMANENT","scope":"delivery","code":"media_too_large"`:    &media.Rejection{Code: "media_too_large", Message: "too large"},
		`"category":"TRANSIENT","scope":"delivery","code":"media_store_failed"`: fmt.Errorf("register: %w", media.ErrBusy),
	} {
		q := &queue{refused: refused}
		w := newWorker(t, q, web(nil), nil)
		q.add("w", "1", `{"media":[{"type":"image","url":"https://h/aa"}]}`)
		w.runOnce(t.Context())
		require.Contains(t, q.outcome("w/1/token-of-run"), code)
	}
}

func TestFailedCommitDoesNotStopTheWorker(t *testing.T) {
	var log strings.Builder
	q := &queue{commitErr: errors.New("connection reset")}
	w := newWorker(t, q, web(nil), func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	q.add("w", "1", `{"text":"x"}`)
	w.runOnce(t.Context())
	require.Contains(t, log.String(), "id=1: commit: connection reset")

	q.commitErr = nil
	q.add("w", "1", `{"text":"x"}`)
	w.runOnce(t.Context())
	require.JSONEq(t, `{"ok":true}`, q.outcome("w/1/token-of-run"))
}

func TestWorkerRequiresItsConfig(t *testing.T) {
	_, err := NewWorker(Config{})
	require.ErrorContains(t, err, "required")
}

// The submissions of many workspaces hang, or all submissions with media of one host.
func TestEveryWorkspaceAndHostLeavesCapacity(t *testing.T) {
	for name, slow := range map[string]string{"many workspaces": "https://h%d/slow", "a host": "https://h/slow"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				q := &queue{}
				w := newWorker(t, q, web(func(_ context.Context, url string) *autopost.Error {
					if strings.HasSuffix(url, "/slow") {
						<-release
					}
					return nil
				}), nil)
				for n := range 20 {
					for i := range 10 {
						q.add(fmt.Sprint("slow", n), fmt.Sprint(i), fmt.Sprintf(`{"media":[{"type":"image","url":%q}]}`, strings.ReplaceAll(slow, "%d", fmt.Sprint(n))))
					}
				}
				for range 5 {
					_, _ = w.poll(t.Context())
					synctest.Wait()
				}
				q.add("quick", "1", `{"media":[{"type":"image","url":"https://quick/aa"}]}`)
				_, _ = w.poll(t.Context())
				synctest.Wait()
				require.NotEmpty(t, q.outcome("quick/1/token-of-run"))
				close(release)
				w.runs.Wait()
				require.Len(t, q.outcomes, 201)
			})
		})
	}
}

// Many workspaces fetch from hosts of their own and from a common one. A panic ends only its submission.
func TestManyWorkspacesFetchAtOnceAndPanics(t *testing.T) {
	t.Parallel()
	q := &queue{}
	w := newWorker(t, q, web(func(_ context.Context, url string) *autopost.Error {
		if strings.HasSuffix(url, "/panic") {
			panic(url)
		}
		return nil
	}), nil)
	const workspaces, posts = 40, 5
	for n := range workspaces {
		for post := range posts {
			q.add(fmt.Sprint("w", n), fmt.Sprint(post), fmt.Sprintf(`{"media":[{"url":"https://host%d.example/%d"},{"url":"https://common.example/%d"}]}`, n, post, post))
		}
		q.add(fmt.Sprint("w", n), "bad", `{"media":[{"url":"https://common.example/panic"}]}`)
	}
	var panics atomic.Int64
	ctx := worker.ReportPanics(t.Context(), func(*worker.Panic) { panics.Add(1) })
	for range 5 * posts { // a panic ends the run of its workspace
		w.runOnce(ctx)
	}
	require.Len(t, q.outcomes, workspaces*posts)
	require.Equal(t, int64(workspaces), panics.Load())
	require.Empty(t, w.share.Keys(), "all capacity is released")
}
