// Package results is the stage that tells the outside what became of posts: it has the
// database read on in the events, takes the calls that are due, makes them, signed, and
// commits what each came to.
//
// Which event is told to whom, when a call is due again and when a receiver is given up
// is decided in the database. The stage keeps no state; any number of them may run.
// What it says is described in docs/result-webhooks.md.
package results

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"autopost"
	"autopost/internal/outbound"
	"autopost/internal/outbound/signed"
	"autopost/internal/service"
)

// Call is one that is due.
type Call struct {
	WebhookID string
	// EventID is webhook-id, by which a receiver knows a repetition.
	EventID    string
	ClaimToken string
	URL        string
	// AuthRefs name the credentials that sign, the newest first.
	AuthRefs []string
	Timeout  time.Duration
	// Body is JSON, the same in every repetition.
	Body string
}

// Outcome is what a call came to.
type Outcome struct {
	// HTTPStatus is 0 where no answer came.
	HTTPStatus int
	// RetryAfter is the wait that the receiver asked for; 0 = none.
	RetryAfter time.Duration
	// Error says what went wrong; "" after an answer of class 2xx.
	Error string
}

// Told is a call and what it came to.
type Told struct {
	Call    Call
	Outcome Outcome
}

// Queue is what the stage needs of the database.
type Queue interface {
	// ReadyWebhookWorkspaces names workspaces whose events are to be read, or in which a call is due.
	ReadyWebhookWorkspaces(ctx context.Context, limit int) ([]string, error)
	// EnqueueWebhooks reads on in the events; more says that there are others.
	EnqueueWebhooks(ctx context.Context, workspace string) (more bool, err error)
	// ClaimWebhooks takes at most limit calls that are due.
	ClaimWebhooks(ctx context.Context, workspace string, limit int) ([]Call, error)
	// CommitWebhooks records what calls came to.
	CommitWebhooks(ctx context.Context, workspace string, told []Told) error
}

// Keys opens credentials.
type Keys interface {
	Open(ctx context.Context, workspace, authRef string) (autopost.Secret, error)
}

// Config is what the stage needs. Queue, Keys and Client are required.
type Config struct {
	Queue Queue
	Keys  Keys
	// Client makes the calls. The addresses are tenants' own: it is to guard them.
	Client *outbound.Client
	// Wake hints that somebody is to be told something; nil = nobody hints.
	Wake <-chan struct{}
	// Interval between two looks at the queue; 500 ms. Where nothing is to be told it grows to Quiet.
	Interval time.Duration
	// Quiet is the longest time between two looks; 5 s, which does without anybody to wake the stage.
	Quiet time.Duration
	// AtOnce bounds the calls that are under way; 256.
	AtOnce int
	// Log is slog.Default() when nil.
	Log *slog.Logger
}

const (
	// queryTimeout bounds one call to the database.
	queryTimeout = 30 * time.Second
	// mostAtOnce bounds the outcomes that are recorded together, and how long their rows stay locked.
	mostAtOnce = 100
	// drainTime is how long calls under way may go on when the stage ends; whom it
	// does not suffice is called again, under the same id.
	drainTime         = 10 * time.Second
	workspacesPerLook = 10_000
	// readingsPerLook bounds how long a workspace with many events is read before others have their turn.
	readingsPerLook = 4
	// readersAtOnce bounds the workspaces that are read at the same time.
	readersAtOnce = 4
)

// Teller does what the package is for. Make it by New.
type Teller struct {
	cfg Config
	// places are taken by calls that are under way.
	places chan struct{}
	// freed says that a call has ended, so that the next may be taken.
	freed chan struct{}
	calls sync.WaitGroup
	// outcomes go together, those of a workspace at a time.
	outcomes *service.Batches[string, Told, struct{}]
	// served is the workspace whose calls were begun last; the next look begins behind it.
	served string
	down   bool
}

// New checks the configuration and fills in its defaults.
func New(cfg Config) (*Teller, error) {
	if cfg.Queue == nil || cfg.Keys == nil || cfg.Client == nil {
		return nil, errors.New("results: queue, keys and client are required")
	}
	cfg.Interval = cmp.Or(cfg.Interval, 500*time.Millisecond)
	cfg.Quiet = max(cmp.Or(cfg.Quiet, 5*time.Second), cfg.Interval)
	cfg.AtOnce = cmp.Or(cfg.AtOnce, 256)
	cfg.Log = cmp.Or(cfg.Log, slog.Default())
	return &Teller{cfg: cfg, places: make(chan struct{}, cfg.AtOnce), freed: make(chan struct{}, 1)}, nil
}

// Run works until ctx ends, then lets calls under way come to their end, within reason.
func (t *Teller) Run(ctx context.Context) error {
	calling, stop := context.WithCancel(context.WithoutCancel(ctx))
	t.outcomes = service.NewBatches(calling, service.Bounds{Most: mostAtOnce, Timeout: queryTimeout}, t.commit)
	defer func() {
		timer := time.AfterFunc(drainTime, stop)
		t.calls.Wait()
		timer.Stop()
		stop()
	}()
	timer := time.NewTimer(t.cfg.Interval)
	defer timer.Stop()
	for pause := t.cfg.Interval; ; pause = min(2*pause, t.cfg.Quiet) {
		if t.look(ctx, calling) {
			pause = t.cfg.Interval
		}
		timer.Reset(pause)
		select {
		case <-ctx.Done():
			return nil
		case <-t.freed:
		case <-t.cfg.Wake:
		case <-timer.C:
		}
	}
}

// look reads on and begins the calls that are due, without waiting for any. It returns
// whether there was anything to look at.
func (t *Teller) look(ctx, calling context.Context) bool {
	query, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	workspaces, err := t.cfg.Queue.ReadyWebhookWorkspaces(query, workspacesPerLook)
	t.report(ctx, err)
	t.eachWorkspace(ctx, workspaces, readersAtOnce, t.read)
	slices.Sort(workspaces) // by bytes, as they are compared here, whatever the database's locale
	next := max(0, slices.IndexFunc(workspaces, func(w string) bool { return w > t.served }))
	full := false // who found no place has the first of the next look, and nobody passes by meanwhile
	t.eachWorkspace(ctx, slices.Concat(workspaces[next:], workspaces[:next]), 1, func(ctx context.Context, workspace string) error {
		if full = full || len(t.places) == cap(t.places); full {
			return nil
		}
		return t.begin(ctx, calling, workspace)
	})
	return len(workspaces) > 0
}

// eachWorkspace does something in all of them, so many at once; one that fails holds up no other.
func (t *Teller) eachWorkspace(ctx context.Context, workspaces []string, atOnce int, do func(ctx context.Context, workspace string) error) {
	var group errgroup.Group
	group.SetLimit(atOnce)
	for _, workspace := range workspaces {
		group.Go(func() error {
			query, cancel := context.WithTimeout(ctx, queryTimeout)
			defer cancel()
			if err := do(query, workspace); err != nil && ctx.Err() == nil {
				t.cfg.Log.ErrorContext(ctx, "results.interrupted", "workspace_id", workspace, "error", err)
			}
			return nil
		})
	}
	_ = group.Wait() // what failed was logged
}

// read has the database read on in the events of a workspace.
func (t *Teller) read(ctx context.Context, workspace string) error {
	for range readingsPerLook {
		if more, err := t.cfg.Queue.EnqueueWebhooks(ctx, workspace); err != nil || !more {
			return err
		}
	}
	return nil
}

// begin makes as many calls of a workspace as there are places for, without waiting for any.
func (t *Teller) begin(ctx, calling context.Context, workspace string) error {
	due, err := t.cfg.Queue.ClaimWebhooks(ctx, workspace, cap(t.places)-len(t.places))
	if err != nil {
		return err
	}
	if len(due) > 0 {
		t.served = workspace
	}
	keys := map[string]func() []signed.Key{} // of each webhook, opened once
	for _, call := range due {
		if keys[call.WebhookID] == nil {
			keys[call.WebhookID] = sync.OnceValue(func() []signed.Key { return t.keys(calling, workspace, call) })
		}
		t.places <- struct{}{} // there is room: nobody else takes any
		t.calls.Go(func() {
			defer func() {
				<-t.places
				select {
				case t.freed <- struct{}{}:
				default:
				}
			}()
			t.tell(calling, workspace, call, keys[call.WebhookID])
		})
	}
	return nil
}

// report turns the repeated failure of the loop into one line when it begins and one when it is over.
func (t *Teller) report(ctx context.Context, err error) {
	switch {
	case err != nil && ctx.Err() == nil && !t.down:
		t.down = true
		t.cfg.Log.ErrorContext(ctx, "results.unavailable", "error", err)
	case err == nil && t.down:
		t.down = false
		t.cfg.Log.InfoContext(ctx, "results.recovered")
	}
}
