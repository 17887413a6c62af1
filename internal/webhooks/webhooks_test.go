package webhooks_test

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"slices"
	"strconv"
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
	"autopost/internal/webhooks"
	"autopost/internal/worker"
)

const key = "whsec_Y2FuYXJ5LXNpZ25pbmcta2V5LXRoYXQtc3RheXMtYXQtaG9tZQ=="

// queue is a store that returns its calls once and receives their outcomes.
type queue struct {
	mu        sync.Mutex
	due       []webhooks.Call
	polls     int
	read      int
	committed chan webhooks.Outcome
	broken    bool
	// refuses is an HTTP status that the store refuses.
	refuses int
}

func (q *queue) ReadyWebhookWorkspaces(context.Context, int) ([]string, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.polls++
	if q.broken {
		return nil, errors.New("the database is unavailable")
	}
	return []string{"w"}, nil
}

func (q *queue) EnqueueWebhooks(context.Context, string) (bool, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.read++
	return q.read < 3, nil
}

func (q *queue) ClaimWebhooks(_ context.Context, _ string, limit int) ([]webhooks.Call, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(limit, len(q.due))
	claimed := q.due[:n]
	q.due = q.due[n:]
	return claimed, nil
}

func (q *queue) CommitWebhookBatch(_ context.Context, _ string, results []webhooks.Result) error {
	for _, r := range results {
		if q.refuses == r.Outcome.HTTPStatus && q.refuses != 0 {
			return worker.ErrRefused
		}
	}
	for _, r := range results {
		q.committed <- r.Outcome
	}
	return nil
}

type keys map[string]string

func (k keys) OpenBound(_, ref string, _ json.RawMessage) (autopost.Secret, error) {
	if k[ref] == "" {
		return autopost.Secret{}, errors.New("no such credential")
	}
	return autopost.NewSecret(k[ref]), nil
}

// send runs the stage over calls of one receiver until all are committed.
func send(t *testing.T, receiver http.HandlerFunc, atOnce int, calls ...webhooks.Call) []webhooks.Outcome {
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
		calls[i].Bound = make([]json.RawMessage, len(calls[i].AuthRefs))
		calls[i].EventID, calls[i].TimeoutMS, calls[i].Body = "01989f3a-7c1e-7a2b-8d3e-0123456789ab", cmp.Or(calls[i].TimeoutMS, 60_000), `{"type":"webhook.test"}`
	}
	q := &queue{due: calls, committed: make(chan webhooks.Outcome, len(calls))}
	ctx, stop := context.WithCancel(t.Context())
	ended := run(ctx, t, q, atOnce)
	var outcomes []webhooks.Outcome
	for range len(calls) {
		outcomes = append(outcomes, <-q.committed)
	}
	stop()
	require.NoError(t, <-ended)
	return outcomes
}

func run(ctx context.Context, t *testing.T, store webhooks.Store, atOnce int) <-chan error {
	t.Helper()
	return runWith(ctx, t, store, keys{"key": key, "old": key, "bad": "whsec_short"}, atOnce)
}

func runWith(ctx context.Context, t *testing.T, store webhooks.Store, keys keys, atOnce int) <-chan error {
	t.Helper()
	sender, err := webhooks.New(webhooks.Config{
		Store: store, Keys: keys, MaxCalls: atOnce, Interval: time.Millisecond, Log: slog.New(slog.DiscardHandler),
		Client: outbound.Guarded(outbound.GuardedConfig{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, Strict: true, MaxBytes: webhooks.MaxAnswer}),
	})
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- sender.Run(ctx) }()
	return ended
}

func TestCallsAreSignedWithEachAvailableKey(t *testing.T) {
	t.Parallel()
	library, err := standardwebhooks.NewWebhook(key)
	require.NoError(t, err)
	outcomes := send(t, func(w http.ResponseWriter, r *http.Request) {
		if library.Verify([]byte(`{"type":"webhook.test"}`), r.Header) != nil || len(strings.Fields(r.Header.Get("webhook-signature"))) != 2 {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}, 0, webhooks.Call{AuthRefs: []string{"key", "gone", "bad", "old"}})
	require.Equal(t, []webhooks.Outcome{{HTTPStatus: 200}}, outcomes)
}

// Many webhooks of one claim have keys of their own, and the stage starts calls while others read their keys.
func TestEachWebhookOfAClaimHasItsOwnKey(t *testing.T) {
	t.Parallel()
	const webhooksOfClaim, callsOfWebhook = 60, 3
	own := keys{}
	verify := map[string]*standardwebhooks.Webhook{}
	for n := range webhooksOfClaim {
		id := fmt.Sprint("webhook-", n)
		own[id] = "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat(id, 4)))
		library, err := standardwebhooks.NewWebhook(own[id])
		require.NoError(t, err)
		verify[id] = library
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if verify[strings.TrimPrefix(r.URL.Path, "/")].Verify(body, r.Header) != nil {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	t.Cleanup(server.Close)
	q := &queue{committed: make(chan webhooks.Outcome, webhooksOfClaim*callsOfWebhook)}
	for n := range webhooksOfClaim * callsOfWebhook {
		id := fmt.Sprint("webhook-", n%webhooksOfClaim)
		q.due = append(q.due, webhooks.Call{WebhookID: id, URL: server.URL + "/" + id, AuthRefs: []string{id}, Bound: make([]json.RawMessage, 1), EventID: "x", TimeoutMS: 60_000, Body: "{}"})
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := runWith(ctx, t, q, own, webhooksOfClaim*callsOfWebhook)
	for range webhooksOfClaim * callsOfWebhook {
		require.Equal(t, webhooks.Outcome{HTTPStatus: 200}, <-q.committed)
	}
	stop()
	require.NoError(t, <-ended)
}

func TestOutcomesOfCalls(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		call   webhooks.Call
		want   webhooks.Outcome
	}{
		{"taken", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }, webhooks.Call{}, webhooks.Outcome{HTTPStatus: 204}},
		{"later", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte("come\nback\x00 later\xff"))
		}, webhooks.Call{}, webhooks.Outcome{HTTPStatus: 503, RetryAfterMS: 7000, Error: "503 come back later"}},
		{"a redirect", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) }, webhooks.Call{}, webhooks.Outcome{HTTPStatus: 302, Error: "302"}},
		{"taken, with too much to say", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, webhooks.MaxAnswer+1)) }, webhooks.Call{}, webhooks.Outcome{HTTPStatus: 200}},
		{"silence", func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // only then a server hears that its caller left
			<-r.Context().Done()
		}, webhooks.Call{TimeoutMS: 100}, webhooks.Outcome{Error: "no answer within 100ms"}},
		{"inside", nil, webhooks.Call{URL: "https://10.0.0.7/"}, webhooks.Outcome{Error: "call 10.0.0.7: address is not allowed"}},
		{"no key", nil, webhooks.Call{AuthRefs: []string{"gone"}}, webhooks.Outcome{Error: "no signing key is available: bind signing_ref to a credential of platform webhook"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, send(t, c.answer, 0, c.call)[0])
		})
	}
}

func TestAnIdleSenderPollsLessOftenAndIsWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{broken: true}
		wake := make(chan struct{})
		sender, err := webhooks.New(webhooks.Config{
			Store: q, Keys: keys{}, Client: outbound.Guarded(outbound.GuardedConfig{}), Wake: wake, MaxInterval: time.Hour, Log: slog.New(slog.DiscardHandler),
		})
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- sender.Run(ctx) }()
		<-time.After(24 * time.Hour)
		synctest.Wait()
		q.mu.Lock()
		require.Less(t, q.polls, 24+15, "the pause doubles from half a second up to an hour")
		before := q.polls
		q.mu.Unlock()
		wake <- struct{}{}
		synctest.Wait()
		q.mu.Lock()
		require.Equal(t, before+1, q.polls)
		q.mu.Unlock()
		stop()
		require.NoError(t, <-ended)
	})
}

func TestConcurrentCallsAreBounded(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	now, most := 0, 0
	outcomes := send(t, func(http.ResponseWriter, *http.Request) {
		mu.Lock()
		now++
		most = max(most, now)
		mu.Unlock()
		defer func() { mu.Lock(); now--; mu.Unlock() }()
	}, 2, make([]webhooks.Call, 40)...)
	require.Len(t, outcomes, 40)
	require.LessOrEqual(t, most, 2)
}

// busy is a store whose work takes time. It counts what it is asked.
type busy struct {
	mu    sync.Mutex
	burst int // due calls
	// flight counts claimed calls without an outcome, at most parallel.
	flight, parallel int
	polls            int
	commits          []int
	left             chan struct{} // closed after the last outcome
	took             time.Duration
}

func (b *busy) ReadyWebhookWorkspaces(context.Context, int) ([]string, error) {
	return []string{"w"}, nil
}

func (b *busy) EnqueueWebhooks(context.Context, string) (bool, error) { return false, nil }

func (b *busy) ClaimWebhooks(_ context.Context, _ string, limit int) ([]webhooks.Call, error) {
	<-time.After(b.took)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.polls++
	calls := make([]webhooks.Call, min(limit, b.burst, b.parallel-b.flight))
	for i := range calls { // no key: the outcome of a call is known at once
		calls[i] = webhooks.Call{WebhookID: strconv.Itoa(i % 60), TimeoutMS: 60_000, Body: "{}"}
	}
	b.burst -= len(calls)
	b.flight += len(calls)
	return calls, nil
}

func (b *busy) CommitWebhookBatch(_ context.Context, _ string, results []webhooks.Result) error {
	<-time.After(b.took)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.commits = append(b.commits, len(results))
	b.flight -= len(results)
	done := 0
	for _, n := range b.commits {
		done += n
	}
	if done == cap(b.left) {
		close(b.left)
	}
	return nil
}

// sendBurst returns the store after all outcomes of a burst are committed, and how long that took.
func sendBurst(t *testing.T, burst, parallel int) (b *busy, took time.Duration) {
	t.Helper()
	b = &busy{burst: burst, parallel: parallel, left: make(chan struct{}, burst), took: 5 * time.Millisecond}
	sender, err := webhooks.New(webhooks.Config{
		Store: b, Keys: keys{}, Client: outbound.Guarded(outbound.GuardedConfig{}), Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	began := time.Now()
	go func() { ended <- sender.Run(ctx) }()
	<-b.left
	took = time.Since(began)
	stop()
	require.NoError(t, <-ended)
	return b, took
}

// Calls of a burst start one after another and share polls and commits, so that they leave the processors to
// deliveries. A single call is prompt, and a backlog is sent at full speed.
func TestABurstCostsFewPollsAndCommits(t *testing.T) {
	for _, c := range []struct {
		name              string
		burst, parallel   int
		polls, commits    int
		shortest, longest time.Duration
	}{
		{"one call", 1, 240, 1, 1, 0, 15 * time.Millisecond},
		{"two posts to many webhooks", 300, 240, 20, 20, 300 * 4 * time.Millisecond / time.Duration(runtime.GOMAXPROCS(0)) / 2, 2 * time.Second},
		{"a backlog", 20_000, 1000, 1000, 800, 0, 10 * time.Second},
		{"a backlog below the capacity", 20_000, 100, 1500, 1000, 0, 10 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, took := sendBurst(t, c.burst, c.parallel)
				t.Logf("%d polls, %d commits in %s", b.polls, len(b.commits), took)
				require.LessOrEqual(t, b.polls, c.polls)
				require.LessOrEqual(t, len(b.commits), c.commits)
				require.GreaterOrEqual(t, took, c.shortest)
				require.LessOrEqual(t, took, c.longest)
			})
		})
	}
}

// A failed poll is repeated, and a stop lets running calls finish.
func TestAStopWaitsForRunningCalls(t *testing.T) {
	t.Parallel()
	arrived, proceed := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { close(arrived); <-proceed }))
	t.Cleanup(server.Close)
	q := &queue{broken: true, committed: make(chan webhooks.Outcome, 1), due: []webhooks.Call{{URL: server.URL, AuthRefs: []string{"key"}, Bound: make([]json.RawMessage, 1), EventID: "x", TimeoutMS: 60_000, Body: "{}"}}}
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

func TestARefusedOutcomeFailsNoOtherOfItsBatch(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1)%10 == 0 {
			w.WriteHeader(http.StatusTeapot)
		}
	}))
	t.Cleanup(server.Close)
	const made = 40
	q := &queue{committed: make(chan webhooks.Outcome, made), refuses: http.StatusTeapot}
	for range made {
		q.due = append(q.due, webhooks.Call{URL: server.URL, AuthRefs: []string{"key"}, Bound: make([]json.RawMessage, 1), EventID: "x", TimeoutMS: 60_000, Body: "{}"})
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

// manyQueue is a store with several workspaces.
type manyQueue struct {
	queue
	names []string
	// reading is called for each read of a workspace.
	reading func(ctx context.Context, workspace string) error
	waiting map[string]int
	url     string
	claims  []string
}

func (c *manyQueue) ReadyWebhookWorkspaces(context.Context, int) ([]string, error) {
	return slices.Clone(c.names), nil
}

func (c *manyQueue) EnqueueWebhooks(ctx context.Context, workspace string) (bool, error) {
	return false, c.reading(ctx, workspace)
}

func (c *manyQueue) ClaimWebhooks(_ context.Context, workspace string, limit int) ([]webhooks.Call, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var due []webhooks.Call
	for len(due) < limit && c.waiting[workspace] > 0 {
		c.waiting[workspace]--
		c.claims = append(c.claims, workspace)
		due = append(due, webhooks.Call{URL: c.url, AuthRefs: []string{"key"}, Bound: make([]json.RawMessage, 1), EventID: "x", TimeoutMS: 60_000, Body: "{}"})
	}
	return due, nil
}

// A workspace with a long queue leaves capacity for others.
func TestWorkspacesTakeTurns(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(server.Close)
	q := &manyQueue{queue: queue{committed: make(chan webhooks.Outcome, 100)}, names: []string{"a", "b", "c"}, url: server.URL,
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

// Each workspace waits for the read of the other.
func TestWorkspacesAreReadConcurrently(t *testing.T) {
	t.Parallel()
	in := map[string]chan struct{}{"a": make(chan struct{}), "b": make(chan struct{})}
	read := make(chan error, 2)
	var once sync.Map
	q := &manyQueue{names: []string{"a", "b"}, reading: func(ctx context.Context, workspace string) error {
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

// panicky makes the first claim of each workspace "odd-…", and the commit of each "late-…", panic.
type panicky struct {
	manyQueue

	once sync.Map
}

func (p *panicky) ClaimWebhooks(ctx context.Context, workspace string, limit int) ([]webhooks.Call, error) {
	if _, again := p.once.LoadOrStore(workspace, true); !again && strings.HasPrefix(workspace, "odd-") {
		panic("claim of " + workspace)
	}
	return p.manyQueue.ClaimWebhooks(ctx, workspace, limit)
}

func (p *panicky) CommitWebhookBatch(ctx context.Context, workspace string, results []webhooks.Result) error {
	if strings.HasPrefix(workspace, "late-") {
		panic("commit of " + workspace)
	}
	return p.manyQueue.CommitWebhookBatch(ctx, workspace, results)
}

// Many workspaces are read, claimed and committed at once. A panic ends only the work in which it is.
func TestManyWorkspacesAtOnceAndPanics(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(server.Close)
	q := &panicky{manyQueue: manyQueue{queue: queue{committed: make(chan webhooks.Outcome, 300)}, url: server.URL,
		reading: func(context.Context, string) error { return nil }, waiting: map[string]int{}}}
	for n := range 40 {
		for kind, waiting := range map[string]int{"even-": 4, "odd-": 2, "late-": 1} {
			q.waiting[kind+strconv.Itoa(n)] = waiting
			q.names = append(q.names, kind+strconv.Itoa(n))
		}
	}
	panics := make(chan *worker.Panic, 300)
	ctx, stop := context.WithCancel(worker.ReportPanics(t.Context(), func(failure *worker.Panic) { panics <- failure }))
	ended := run(ctx, t, q, 300)
	for range 40 * (4 + 2) {
		require.Equal(t, webhooks.Outcome{HTTPStatus: 200}, <-q.committed)
	}
	for range 40 + 40 {
		require.EqualError(t, <-panics, "panic: string")
	}
	stop()
	require.NoError(t, <-ended)
}
