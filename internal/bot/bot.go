// Package bot sends the messages of the shop bot. It claims due messages, makes their calls by the adapters of the
// platforms and commits the outcomes; it also resumes what a crash or a failure left.
//
// The database decides everything else: answers are rules and states in SQL, which act when a message is received. The
// stage keeps no state; any number of daemons may run it. docs/operate/bot.md describes it.
package bot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"autopost"
	"autopost/internal/telemetry"
	"autopost/internal/worker"
)

// Store is what bot needs from the database. *pg.Store implements it. An error that is worker.ErrRefused repeats if the
// same call is made again; after any other error the call may have been applied.
type Store interface {
	// ReadyBotWorkspaces returns up to limit workspaces with a due message, or with a received one to process.
	ReadyBotWorkspaces(ctx context.Context, limit int) ([]string, error)
	// BotClaimReplies leases up to limit due messages of a workspace to the run, of each chat the oldest.
	BotClaimReplies(ctx context.Context, workspace, runID string, limit int) ([]Reply, error)
	// BotStartReply writes the start record of a message. It may be repeated.
	BotStartReply(ctx context.Context, workspace, replyID, claimToken string) (Start, error)
	// BotCommitReply records the outcome of a call. It may be repeated.
	BotCommitReply(ctx context.Context, workspace, replyID, claimToken string, outcome autopost.Outcome) (Commit, error)
	// BotReleaseLost releases the unstarted claims of the run in a workspace, except those with a known token.
	BotReleaseLost(ctx context.Context, workspace, runID string, known []string) (released int, err error)
	// BotRecover processes received messages that are due, and ends leases of lost claims.
	BotRecover(ctx context.Context, workspace string) (Recovered, error)
	// TouchRun is the heartbeat of the run; ended is true for the last one.
	TouchRun(ctx context.Context, runID, host string, ended bool) error
}

// Reply is a claimed message of the bot. Its DeliveryID is the reply_id of the database.
type Reply struct {
	autopost.Delivery

	// CallbackID is the pressed button that it answers; "" without one.
	CallbackID string
}

// Start is the answer to a start request. After a refusal the database has released the message.
type Start struct {
	Applied bool
	Reason  string
	// SendIn is the time from the answer to the slot; Deadline is the time from the answer by which the call must end.
	SendIn, Deadline time.Duration
}

// Commit is the answer to an outcome. If it is not applied, the claim was lost.
type Commit struct {
	Applied        bool
	Status, Reason string
}

// Recovered counts what one recovery of a workspace did.
type Recovered struct{ Processed, Released, Unknown int }

// Credentials opens and renews the secrets of bots.
type Credentials interface {
	// Credential returns the secret of a credential. The error is autopost.ErrNoCredential if it is not bound.
	Credential(ctx context.Context, workspace, authRef string, platform autopost.Platform) (autopost.Secret, error)
	// Renew returns another secret after the platform refused one; a zero secret if the failure stands.
	Renew(ctx context.Context, d autopost.Delivery, used autopost.Secret, failure autopost.Error) (autopost.Secret, error)
}

// Media gives adapters access to the media of a message. Messages of the bot have none.
type Media interface {
	MaterialsFor(d autopost.Delivery) autopost.MediaAccess
}

// Config is what a Worker works with. RunID, Store, Credentials, Media and Adapters are required.
type Config struct {
	// RunID names the daemon in its leases; Host is its machine.
	RunID, Host string
	Store       Store
	Credentials Credentials
	Media       Media
	Adapters    map[autopost.Platform]autopost.Adapter
	// Heartbeats means that no other stage of the daemon sends the heartbeat of the run.
	Heartbeats bool
	// Wake hints that there is a due message. It may be nil.
	Wake <-chan struct{}
	// Interval is the pause between two polls without a wake-up. Default 30 s.
	Interval time.Duration
	// RecoverInterval is the shortest pause between two recoveries. Default 5 s.
	RecoverInterval time.Duration
	// AdapterTimeout bounds one call. Default 60 s.
	AdapterTimeout time.Duration
	// MaxCalls bounds the concurrent calls. Default 64. A workspace gets at most half of what is free.
	MaxCalls int
	// Recorder receives metrics; nil for none.
	Recorder *telemetry.Recorder
	// Log defaults to slog.Default().
	Log *slog.Logger
}

const (
	// queryTimeout bounds one call to the database.
	queryTimeout = 30 * time.Second
	// heartbeat is the period of the heartbeat; the database takes a run for dead after three.
	heartbeat = 15 * time.Second
	// drainTime is how long running calls may continue when the stage ends. The lease of an interrupted call expires.
	drainTime         = 30 * time.Second
	workspacesPerPoll = 10_000
	// soonest is the pause until the next poll after a claim that was full.
	soonest = time.Millisecond
)

// Worker sends the messages of bots. Make it with New.
type Worker struct {
	cfg Config
	// share leaves capacity free for other workspaces: a slow platform of one must not stop them.
	share *worker.FairShare[string]
	// freed holds one hint that a call has ended.
	freed chan struct{}
	calls sync.WaitGroup
	// claims are the messages in flight.
	claims *claims
	// served is the workspace of the last claim. The next poll starts behind it.
	served string
	// recovered is when the last recovery began.
	recovered time.Time
	// polled is when the last poll succeeded, in nanoseconds since 1970.
	polled atomic.Int64
}

// New checks the configuration and fills in its defaults.
func New(cfg Config) (*Worker, error) {
	if cfg.RunID == "" || cfg.Store == nil || cfg.Credentials == nil || cfg.Media == nil || cfg.Adapters == nil {
		return nil, errors.New("bot: run id, store, credentials, media and adapters are required")
	}
	cfg.Interval = cmp.Or(cfg.Interval, 30*time.Second)
	cfg.RecoverInterval = cmp.Or(cfg.RecoverInterval, 5*time.Second)
	cfg.AdapterTimeout = cmp.Or(cfg.AdapterTimeout, time.Minute)
	cfg.MaxCalls = cmp.Or(cfg.MaxCalls, 64)
	cfg.Log = cmp.Or(cfg.Log, slog.Default())
	return &Worker{cfg: cfg, share: worker.NewFairShare[string](cfg.MaxCalls, nil), freed: make(chan struct{}, 1), claims: newClaims()}, nil
}

// LastPoll is the time of the last successful poll; ok is false before the first.
func (w *Worker) LastPoll() (at time.Time, ok bool) {
	nanos := w.polled.Load()
	return time.Unix(0, nanos), nanos != 0
}

// Run works until ctx ends. Then running calls may finish within drainTime.
func (w *Worker) Run(ctx context.Context) error {
	calling, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var background sync.WaitGroup
	if w.cfg.Heartbeats {
		w.touch(ctx, false)
		background.Go(worker.Task(ctx, func() {
			_ = worker.Loop{Poll: w.beat, Interval: heartbeat, Delay: heartbeat}.Run(calling)
		}))
	}
	err := worker.Loop{
		Poll:     func(ctx context.Context) (time.Duration, error) { return w.poll(ctx, calling) },
		Interval: w.cfg.Interval, Wake: w.cfg.Wake, Freed: w.freed, Name: "bot", Log: w.cfg.Log,
	}.Run(ctx)
	timer := time.AfterFunc(drainTime, stop)
	w.calls.Wait()
	timer.Stop()
	stop()
	background.Wait()
	if w.cfg.Heartbeats {
		w.touch(ctx, true)
	}
	return err
}

func (w *Worker) beat(ctx context.Context) (time.Duration, error) {
	w.touch(ctx, false)
	return 0, nil
}

// touch sends a heartbeat. After missed ones the database ends the leases of the run.
func (w *Worker) touch(ctx context.Context, ended bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), queryTimeout/3)
	defer cancel()
	if err := w.cfg.Store.TouchRun(ctx, w.cfg.RunID, w.cfg.Host, ended); err != nil {
		w.cfg.Log.WarnContext(ctx, "bot.heartbeat_missed", "error", err)
	}
}

// ready returns the workspaces with work, those behind the last served one first.
func (w *Worker) ready(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	return w.cfg.Store.ReadyBotWorkspaces(ctx, workspacesPerPoll)
}

// recover resumes what a crash or a failure left, at most once per RecoverInterval. A workspace that fails does not stop
// the others.
func (w *Worker) recover(ctx context.Context, workspaces []string) (err error) {
	if time.Since(w.recovered) < w.cfg.RecoverInterval {
		return nil
	}
	w.recovered = time.Now()
	for _, workspace := range workspaces {
		query, cancel := context.WithTimeout(ctx, queryTimeout)
		done, failure := w.cfg.Store.BotRecover(query, workspace)
		cancel()
		if failure != nil {
			err = cmp.Or(err, failure)
			continue
		}
		w.cfg.Recorder.Recovered("reply", done.Released+done.Unknown)
		if done != (Recovered{}) {
			w.cfg.Log.WarnContext(ctx, "bot.recovered", "workspace_id", workspace, "processed", done.Processed, "released", done.Released, "unknown", done.Unknown)
		}
	}
	return err
}

// poll starts due calls, without waiting for one. Workspaces are served in turns.
func (w *Worker) poll(ctx, calling context.Context) (next time.Duration, err error) {
	workspaces, err := w.ready(ctx)
	if err != nil {
		return 0, err
	}
	w.polled.Store(time.Now().UnixNano())
	if next, err = w.releaseLost(ctx); err != nil {
		return 0, err
	}
	err = w.recover(ctx, workspaces)
	for _, workspace := range inTurns(workspaces, w.served) {
		room := w.share.Left(workspace)
		if room == 0 || ctx.Err() != nil {
			continue
		}
		claimed, failure := w.claim(ctx, workspace, room)
		if failure != nil {
			if !errors.Is(failure, worker.ErrRefused) {
				w.claims.miss(workspace)
			}
			err = cmp.Or(err, failure)
			continue
		}
		if len(claimed) > 0 {
			w.served = workspace
		}
		if len(claimed) == room {
			next = soonest
		}
		w.start(ctx, calling, claimed)
	}
	return next, err
}

func (w *Worker) claim(ctx context.Context, workspace string, limit int) ([]Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	return w.cfg.Store.BotClaimReplies(ctx, workspace, w.cfg.RunID, limit)
}

// start makes the calls of claimed messages in the background.
func (w *Worker) start(ctx, calling context.Context, claimed []Reply) {
	for _, reply := range claimed {
		w.share.Take(1, reply.WorkspaceID)
		w.claims.held.Hold(reply.WorkspaceID, reply.ClaimToken)
		w.calls.Go(worker.Task(ctx, func() {
			defer func() {
				w.claims.held.Drop(reply.WorkspaceID, reply.ClaimToken)
				w.share.Release(1, reply.WorkspaceID)
				worker.Wake(w.freed)
			}()
			w.deliver(calling, reply)
		}))
	}
}

// inTurns returns the workspaces in a circle that starts behind the last served one.
func inTurns(workspaces []string, served string) []string {
	first := 0
	for n, workspace := range workspaces {
		if workspace > served {
			first = n
			break
		}
	}
	return append(append([]string{}, workspaces[first:]...), workspaces[:first]...)
}

// failed is the outcome of a call that was not made and may be tried again.
func failed(code, format string, values ...any) autopost.Outcome {
	return autopost.Failed(autopost.Error{
		Category: autopost.Transient, Scope: autopost.ScopeDelivery, Code: code, Known: true, Message: fmt.Sprintf(format, values...),
	})
}
