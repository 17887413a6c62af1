// Package webhooks delivers result webhooks: signed requests that report events to customers. It reads events into
// calls, makes the due calls and commits their outcomes.
//
// The database decides which event goes to which webhook, when a call is due again and when a receiver is given
// up. The stage keeps no state; any number of senders may run. docs/result-webhooks.md describes the requests.
package webhooks

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"autopost"
	"autopost/internal/outbound"
	"autopost/internal/worker"
)

// Store is what webhooks needs from the database. *pg.Store implements it.
type Store interface {
	// ReadyWebhookWorkspaces returns up to limit workspaces with events to read or with due calls.
	ReadyWebhookWorkspaces(ctx context.Context, limit int) ([]string, error)
	// EnqueueWebhooks reads the next events of a workspace; more means that there are further events.
	EnqueueWebhooks(ctx context.Context, workspace string) (more bool, err error)
	// ClaimWebhooks leases at most limit due calls.
	ClaimWebhooks(ctx context.Context, workspace string, limit int) ([]Call, error)
	// CommitWebhookBatch records the outcomes of calls. It may return worker.ErrRefused.
	CommitWebhookBatch(ctx context.Context, workspace string, results []Result) error
}

// Call is a due call of a result webhook.
type Call struct {
	WebhookID string `json:"webhook_id"`
	// EventID is the webhook-id header. It is the same in each retry.
	EventID    string `json:"event_id"`
	ClaimToken string `json:"claim_token"`
	URL        string `json:"url"`
	// AuthRefs are the signing credentials, the newest first.
	AuthRefs []string `json:"auth_refs"`
	// Bound has what Keys needs to open each of them.
	Bound     []json.RawMessage `json:"bound"`
	TimeoutMS int64             `json:"timeout_ms"`
	// Body is JSON. It is the same in each retry.
	Body string `json:"body"`
}

// Outcome is the outcome of a call.
type Outcome struct {
	// HTTPStatus is 0 if no answer arrived.
	HTTPStatus int `json:"http_status,omitempty"`
	// RetryAfterMS is the wait that the receiver asks for; 0 if it asks for none.
	RetryAfterMS int64 `json:"retry_after_ms,omitempty"`
	// Error describes the failure; "" after a 2xx answer.
	Error string `json:"error,omitempty"`
}

// Result is the outcome of a claimed call.
type Result struct {
	WebhookID  string  `json:"webhook_id"`
	EventID    string  `json:"event_id"`
	ClaimToken string  `json:"claim_token"`
	Outcome    Outcome `json:"outcome"`
}

// Keys opens signing credentials with what the database has returned about them.
type Keys interface {
	OpenBound(workspace, authRef string, bound json.RawMessage) (autopost.Secret, error)
}

// Config is what a Sender works with. Store, Keys and Client are required.
type Config struct {
	Store Store
	Keys  Keys
	// Client makes the calls. Tenants choose the addresses, so it must guard the private network.
	Client *outbound.Client
	// Wake hints that there are events or due calls. It may be nil.
	Wake <-chan struct{}
	// Interval is the pause between two polls. Default 500 ms. It doubles up to MaxInterval while nothing is ready.
	Interval time.Duration
	// MaxInterval is the longest pause between two polls. Default 5 s, which works without wake-ups.
	MaxInterval time.Duration
	// MaxCalls bounds the concurrent calls. Default 256.
	MaxCalls int
	// Log defaults to slog.Default().
	Log *slog.Logger
}

const (
	// queryTimeout bounds one call to the database.
	queryTimeout = 30 * time.Second
	// maxBatch bounds the outcomes of one commit, and so the time that their rows stay locked.
	maxBatch = 100
	// drainTime is how long running calls may continue when the stage ends. An interrupted call is retried under
	// the same id.
	drainTime         = 10 * time.Second
	workspacesPerPoll = 10_000
	// readsPerPoll bounds the reads of a workspace with many events before others get their turn.
	readsPerPoll = 4
	// maxReaders bounds the workspaces that are read concurrently.
	maxReaders = 4
	// spacing is the time between the starts of two calls on one processor. Calls of one event are due together, and
	// would keep all processors from urgent work. Those of the same tick start together, which saves switches.
	spacing = 4 * time.Millisecond
	tick    = 10 * time.Millisecond
	// patience is how long calls may be due faster than they are spaced. Then there is a backlog: calls start at once,
	// until fewer are due than spacing allows for maxDebt.
	patience = 1500 * time.Millisecond
	maxDebt  = time.Second
	// enough outcomes are committed without a pause.
	enough = 32
)

// rest follows a poll and a commit: result webhooks are not urgent.
var rest = worker.Rest{Times: 9, Most: 250 * time.Millisecond}

// Sender makes the calls of result webhooks. Make it with New.
type Sender struct {
	cfg Config
	// running has an element for each running call.
	running chan struct{}
	// freed holds one hint that a call has ended.
	freed    chan struct{}
	calls    sync.WaitGroup
	outcomes *worker.Batcher[string, Result, struct{}]
	// served is the workspace of the last claim. The next poll starts behind it.
	served string
	// idlePolls counts the polls in a row that found nothing ready.
	idlePolls int
	// restsUntil is the earliest time of the next poll.
	restsUntil time.Time
	// nextStart is the time of the next call by spacing; caughtUp is when it was last reached.
	nextStart, caughtUp time.Time
}

// New checks the configuration and fills in its defaults.
func New(cfg Config) (*Sender, error) {
	if cfg.Store == nil || cfg.Keys == nil || cfg.Client == nil {
		return nil, errors.New("webhooks: store, keys and client are required")
	}
	cfg.Interval = cmp.Or(cfg.Interval, 500*time.Millisecond)
	cfg.MaxInterval = max(cmp.Or(cfg.MaxInterval, 5*time.Second), cfg.Interval)
	cfg.MaxCalls = cmp.Or(cfg.MaxCalls, 256)
	cfg.Log = cmp.Or(cfg.Log, slog.Default())
	return &Sender{cfg: cfg, running: make(chan struct{}, cfg.MaxCalls), freed: make(chan struct{}, 1)}, nil
}

// Run works until ctx ends. Then running calls may finish within drainTime.
func (s *Sender) Run(ctx context.Context) error {
	calling, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.outcomes = worker.NewBatcher(calling, worker.Bounds{Most: maxBatch, Timeout: queryTimeout, Rest: rest, Enough: enough}, s.commit)
	defer func() {
		timer := time.AfterFunc(drainTime, stop)
		s.calls.Wait()
		timer.Stop()
		stop()
	}()
	return worker.Loop{
		Poll:     func(ctx context.Context) (time.Duration, error) { return s.poll(ctx, calling) },
		Interval: s.cfg.Interval, Backoff: s.backoff(), Wake: s.cfg.Wake, Freed: s.freed, Name: "webhooks", Log: s.cfg.Log,
	}.Run(ctx)
}

func (s *Sender) backoff() worker.Backoff {
	return worker.Backoff{Least: s.cfg.Interval, Most: s.cfg.MaxInterval}
}

// poll reads events and starts due calls, without waiting for a call. The pause grows while nothing is ready.
func (s *Sender) poll(ctx, calling context.Context) (next time.Duration, err error) {
	if !worker.Sleep(ctx, time.Until(s.restsUntil)) {
		return 0, nil
	}
	select { // this poll serves the calls that have ended
	case <-s.freed:
	default:
	}
	began := time.Now()
	query, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	workspaces, err := s.cfg.Store.ReadyWebhookWorkspaces(query, workspacesPerPoll)
	if err != nil {
		return 0, err
	}
	if len(workspaces) == 0 {
		s.idlePolls++
		return s.backoff().Pause(s.idlePolls), nil
	}
	s.idlePolls = 0
	s.eachWorkspace(ctx, workspaces, maxReaders, s.read)
	slices.Sort(workspaces) // in the order of Go, whatever the collation of the database
	next = s.cfg.Interval
	first := max(0, slices.IndexFunc(workspaces, func(w string) bool { return w > s.served }))
	full := false // serve skipped workspaces first: none may overtake them when a call ends meanwhile
	s.eachWorkspace(ctx, slices.Concat(workspaces[first:], workspaces[:first]), 1, func(ctx context.Context, workspace string) error {
		if full = full || len(s.running) == cap(s.running); full {
			return nil
		}
		return s.startCalls(ctx, calling, workspace)
	})
	if !s.isBacklog(time.Now()) {
		s.restsUntil = time.Now().Add(rest.After(time.Since(began)))
	}
	return next, nil
}

func (s *Sender) isBacklog(now time.Time) bool {
	return s.nextStart.After(now) && now.Sub(s.caughtUp) > patience
}

// startTime returns when the next call of a claim starts.
func (s *Sender) startTime() time.Time {
	now := time.Now()
	if !s.nextStart.After(now) {
		s.nextStart, s.caughtUp = now, now
	}
	at := s.nextStart
	if s.isBacklog(now) {
		at = now
	}
	s.nextStart = s.nextStart.Add(spacing / time.Duration(runtime.GOMAXPROCS(0)))
	if latest := now.Add(maxDebt); s.nextStart.After(latest) {
		s.nextStart = latest
	}
	return at.Truncate(tick)
}

// eachWorkspace runs do for all workspaces, n at a time. It logs failures, so that one does not stop the others.
func (s *Sender) eachWorkspace(ctx context.Context, workspaces []string, n int, do func(ctx context.Context, workspace string) error) {
	var group errgroup.Group
	group.SetLimit(n)
	for _, workspace := range workspaces {
		group.Go(worker.Contained(ctx, func() error {
			query, cancel := context.WithTimeout(ctx, queryTimeout)
			defer cancel()
			if err := do(query, workspace); err != nil && ctx.Err() == nil {
				s.cfg.Log.ErrorContext(ctx, "webhooks.interrupted", "workspace_id", workspace, "error", err)
			}
			return nil
		}))
	}
	_ = group.Wait() // a panic was reported
}

// read reads the next events of a workspace.
func (s *Sender) read(ctx context.Context, workspace string) error {
	for range readsPerPoll {
		if more, err := s.cfg.Store.EnqueueWebhooks(ctx, workspace); err != nil || !more {
			return err
		}
	}
	return nil
}

// startCalls starts as many calls of a workspace as there is capacity for.
func (s *Sender) startCalls(ctx, calling context.Context, workspace string) error {
	due, err := s.cfg.Store.ClaimWebhooks(ctx, workspace, cap(s.running)-len(s.running))
	if err != nil {
		return err
	}
	if len(due) > 0 {
		s.served = workspace
	}
	keys := map[string]func() []outbound.SigningKey{} // opened once per webhook
	for _, call := range due {
		if keys[call.WebhookID] == nil {
			keys[call.WebhookID] = sync.OnceValue(func() []outbound.SigningKey { return s.keys(calling, workspace, call) })
		}
		open := keys[call.WebhookID] // read here: the loop writes the map while calls run
		at := s.startTime()
		s.running <- struct{}{} // never blocks: only this goroutine adds elements
		s.calls.Go(worker.Task(calling, func() {
			defer func() {
				<-s.running
				worker.Wake(s.freed)
			}()
			if worker.Sleep(calling, time.Until(at)) {
				s.send(calling, workspace, call, open)
			}
		}))
	}
	return nil
}
