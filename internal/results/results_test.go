package results_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/outbound"
	"autopost/internal/results"
	"autopost/internal/service"
)

const key = "whsec_Y2FuYXJ5LXNpZ25pbmcta2V5LXRoYXQtc3RheXMtYXQtaG9tZQ=="

// queue hands out its calls once, and hears what they came to.
type queue struct {
	mu        sync.Mutex
	due       []results.Call
	looks     int
	read      int
	committed chan results.Outcome
	broken    bool
	// refuses is a status that the database cannot store.
	refuses int
}

func (q *queue) ReadyWebhookWorkspaces(context.Context, int) ([]string, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.looks++
	if q.broken {
		return nil, errors.New("the database is away")
	}
	return []string{"w"}, nil
}

func (q *queue) EnqueueWebhooks(context.Context, string) (bool, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.read++
	return q.read < 3, nil
}

func (q *queue) ClaimWebhooks(_ context.Context, _ string, limit int) ([]results.Call, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(limit, len(q.due))
	claimed := q.due[:n]
	q.due = q.due[n:]
	return claimed, nil
}

func (q *queue) CommitWebhooks(_ context.Context, _ string, told []results.Told) error {
	for _, t := range told {
		if q.refuses == t.Outcome.HTTPStatus && q.refuses != 0 {
			return service.ErrRefused
		}
	}
	for _, t := range told {
		q.committed <- t.Outcome
	}
	return nil
}

type keys map[string]string

func (k keys) Open(_ context.Context, _, ref string) (autopost.Secret, error) {
	if k[ref] == "" {
		return autopost.Secret{}, errors.New("no such credential")
	}
	return autopost.NewSecret(k[ref]), nil
}

// told runs the stage over calls of one receiver until all are committed.
func told(t *testing.T, receiver http.HandlerFunc, atOnce int, calls ...results.Call) []results.Outcome {
	t.Helper()
	server := httptest.NewServer(receiver)
	t.Cleanup(server.Close)
	for i := range calls {
		if calls[i].URL == "" {
			calls[i].URL = server.URL
		}
		if calls[i].AuthRefs == nil {
			calls[i].AuthRefs = []string{"key"}
		}
		calls[i].EventID, calls[i].Timeout, calls[i].Body = "01989f3a-7c1e-7a2b-8d3e-0123456789ab", max(calls[i].Timeout, 100*time.Millisecond), `{"type":"webhook.test"}`
	}
	q := &queue{due: calls, committed: make(chan results.Outcome, len(calls))}
	ctx, stop := context.WithCancel(t.Context())
	ended := run(ctx, t, q, atOnce)
	var outcomes []results.Outcome
	for range len(calls) {
		outcomes = append(outcomes, <-q.committed)
	}
	stop()
	require.NoError(t, <-ended)
	return outcomes
}

func run(ctx context.Context, t *testing.T, q results.Queue, atOnce int) <-chan error {
	t.Helper()
	teller, err := results.New(results.Config{
		Queue: q, Keys: keys{"key": key, "old": key, "bad": "whsec_short"}, AtOnce: atOnce, Interval: time.Millisecond, Log: slog.New(slog.DiscardHandler),
		Client: outbound.Guarded(outbound.GuardedConfig{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, Strict: true, MaxBytes: results.MaxAnswer}),
	})
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- teller.Run(ctx) }()
	return ended
}

func TestCallsAreSignedByEachKeyAtHand(t *testing.T) {
	t.Parallel()
	library, err := standardwebhooks.NewWebhook(key)
	require.NoError(t, err)
	outcomes := told(t, func(w http.ResponseWriter, r *http.Request) {
		if library.Verify([]byte(`{"type":"webhook.test"}`), r.Header) != nil || len(strings.Fields(r.Header.Get("webhook-signature"))) != 2 {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}, 0, results.Call{AuthRefs: []string{"key", "gone", "bad", "old"}})
	require.Equal(t, []results.Outcome{{HTTPStatus: 200}}, outcomes)
}

func TestWhatACallCameTo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		call   results.Call
		want   results.Outcome
	}{
		{"taken", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }, results.Call{}, results.Outcome{HTTPStatus: 204}},
		{"later", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte("come\nback\x00 later\xff"))
		}, results.Call{}, results.Outcome{HTTPStatus: 503, RetryAfter: 7 * time.Second, Error: "503 come back later"}},
		{"a redirect", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) }, results.Call{}, results.Outcome{HTTPStatus: 302, Error: "302"}},
		{"taken, with too much to say", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, results.MaxAnswer+1)) }, results.Call{}, results.Outcome{HTTPStatus: 200}},
		{"silence", func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // only then a server hears that its caller left
			<-r.Context().Done()
		}, results.Call{}, results.Outcome{Error: "no answer within 100ms"}},
		{"inside", nil, results.Call{URL: "https://10.0.0.7/"}, results.Outcome{Error: "call 10.0.0.7: address is not allowed: 10.0.0.7"}},
		{"no key", nil, results.Call{AuthRefs: []string{"gone"}}, results.Outcome{Error: "no signing key is at hand: bind signing_ref to a credential of platform webhook"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, told(t, c.answer, 0, c.call)[0])
		})
	}
}

// Who has nothing to tell looks ever more seldom, and at once when somebody hints.
func TestAQuietStageIsWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{broken: true}
		wake := make(chan struct{})
		teller, err := results.New(results.Config{
			Queue: q, Keys: keys{}, Client: outbound.Guarded(outbound.GuardedConfig{}), Wake: wake, Quiet: time.Hour, Log: slog.New(slog.DiscardHandler),
		})
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- teller.Run(ctx) }()
		<-time.After(24 * time.Hour)
		synctest.Wait()
		q.mu.Lock()
		require.Less(t, q.looks, 24+15, "half a second, and twice as long each time, up to an hour")
		looks := q.looks
		q.mu.Unlock()
		wake <- struct{}{}
		synctest.Wait()
		q.mu.Lock()
		require.Equal(t, looks+1, q.looks)
		q.mu.Unlock()
		stop()
		require.NoError(t, <-ended)
	})
}

func TestNoMoreCallsAtOnceThanPlaces(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	now, most := 0, 0
	outcomes := told(t, func(http.ResponseWriter, *http.Request) {
		mu.Lock()
		now++
		most = max(most, now)
		mu.Unlock()
		defer func() { mu.Lock(); now--; mu.Unlock() }()
	}, 2, make([]results.Call, 40)...)
	require.Len(t, outcomes, 40)
	require.LessOrEqual(t, most, 2)
}

// The end lets calls under way come to theirs; a database that is away is asked again.
func TestEndWaitsForCalls(t *testing.T) {
	t.Parallel()
	arrived, proceed := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { close(arrived); <-proceed }))
	t.Cleanup(server.Close)
	q := &queue{broken: true, committed: make(chan results.Outcome, 1), due: []results.Call{{URL: server.URL, AuthRefs: []string{"key"}, EventID: "x", Timeout: time.Minute, Body: "{}"}}}
	ctx, stop := context.WithCancel(t.Context())
	ended := run(ctx, t, q, 1)
	q.mu.Lock()
	q.broken = false
	q.mu.Unlock()
	<-arrived
	stop()
	require.Empty(t, ended)
	close(proceed)
	require.NoError(t, <-ended)
	require.Equal(t, 200, (<-q.committed).HTTPStatus)
}

// An outcome that the database refuses is lost alone, whatever it came with.
func TestAnOutcomeThatIsRefusedTakesNoOtherAlong(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1)%10 == 0 {
			w.WriteHeader(http.StatusTeapot)
		}
	}))
	t.Cleanup(server.Close)
	const made = 40
	q := &queue{committed: make(chan results.Outcome, made), refuses: http.StatusTeapot}
	for range made {
		q.due = append(q.due, results.Call{URL: server.URL, AuthRefs: []string{"key"}, EventID: "x", Timeout: time.Minute, Body: "{}"})
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := run(ctx, t, q, made)
	for range made - made/10 {
		require.Equal(t, http.StatusOK, (<-q.committed).HTTPStatus)
	}
	stop()
	require.NoError(t, <-ended)
	require.Empty(t, q.committed)
}

// crowd is a queue of several workspaces.
type crowd struct {
	queue
	names []string
	// reading is called for each workspace that is read.
	reading func(ctx context.Context, workspace string) error
	waiting map[string]int
	url     string
	claims  []string
}

func (c *crowd) ReadyWebhookWorkspaces(context.Context, int) ([]string, error) { return c.names, nil }

func (c *crowd) EnqueueWebhooks(ctx context.Context, workspace string) (bool, error) {
	return false, c.reading(ctx, workspace)
}

func (c *crowd) ClaimWebhooks(_ context.Context, workspace string, limit int) ([]results.Call, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var due []results.Call
	for len(due) < limit && c.waiting[workspace] > 0 {
		c.waiting[workspace]--
		c.claims = append(c.claims, workspace)
		due = append(due, results.Call{URL: c.url, AuthRefs: []string{"key"}, EventID: "x", Timeout: time.Minute, Body: "{}"})
	}
	return due, nil
}

// A workspace with a long queue leaves places to the others.
func TestWorkspacesTakeTurns(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(server.Close)
	q := &crowd{queue: queue{committed: make(chan results.Outcome, 100)}, names: []string{"a", "b", "c"}, url: server.URL,
		reading: func(context.Context, string) error { return nil }, waiting: map[string]int{"a": 30, "b": 1, "c": 1}}
	ctx, stop := context.WithCancel(t.Context())
	ended := run(ctx, t, q, 1)
	for range 32 {
		<-q.committed
	}
	stop()
	require.NoError(t, <-ended)
	require.Less(t, slices.Index(q.claims, "b"), 3)
	require.Less(t, slices.Index(q.claims, "c"), 3)
}

// Several workspaces are read at the same time: here each waits for the other.
func TestWorkspacesAreReadSideBySide(t *testing.T) {
	t.Parallel()
	in := map[string]chan struct{}{"a": make(chan struct{}), "b": make(chan struct{})}
	read := make(chan error, 2)
	var once sync.Map
	q := &crowd{names: []string{"a", "b"}, reading: func(ctx context.Context, workspace string) error {
		if _, again := once.LoadOrStore(workspace, true); again {
			return nil
		}
		close(in[workspace])
		select {
		case <-in[map[string]string{"a": "b", "b": "a"}[workspace]]:
		case <-ctx.Done():
		}
		read <- ctx.Err()
		return nil
	}}
	ctx, stop := context.WithCancel(t.Context())
	ended := run(ctx, t, q, 1)
	require.NoError(t, <-read)
	require.NoError(t, <-read)
	stop()
	require.NoError(t, <-ended)
}
