package ingest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"autopost"
	"autopost/internal/crash"
	"autopost/internal/media"
	"autopost/internal/service"
)

// Config is what the submissions worker needs. Queue, Origins, Fetcher and RunID
// are required.
type Config struct {
	Queue   Queue
	Origins Origins
	Fetcher MediaFetcher
	// RunID names this daemon in the leases it takes.
	RunID string
	// Wake starts a round at once; nil = only the interval does.
	Wake <-chan struct{}
	// Interval between rounds when nobody wakes the worker; 5 s, which does without anybody to.
	Interval time.Duration
	// Concurrency is how many submissions are fetched at once; 32.
	Concurrency int
	// Budget is the longest that the media of one submission may take; 120 s. The
	// lease is renewed as long as that.
	Budget time.Duration
	// Renew is the longest time between two renewals of a lease; 30 s. A short lease is
	// renewed when a third of it is over.
	Renew time.Duration
	// Log is slog.Default() when nil.
	Log *slog.Logger
}

const (
	// workspacesPerRound and mediaAtOnce keep one round, and one submission in
	// it, from taking everything.
	workspacesPerRound = 100
	mediaAtOnce        = 3
	// perWorkspace is how many submissions of one workspace are claimed at once: one
	// slow medium does not hold up the posts behind it.
	perWorkspace = 4
	// soonest bounds how often a lease is renewed.
	soonest = 200 * time.Millisecond
)

// Worker fetches the media of submissions to the origin and commits them. It
// keeps no state: what it held when it died is claimed again after the lease.
type Worker struct {
	cfg    Config
	seats  *seats
	turns  service.Turns
	outage service.Outage
}

// NewWorker checks the configuration and fills in its defaults.
func NewWorker(cfg Config) (*Worker, error) {
	if cfg.Queue == nil || cfg.Origins == nil || cfg.Fetcher == nil || cfg.RunID == "" {
		return nil, errors.New("submissions worker: queue, origins, fetcher and run id are required")
	}
	cfg.Interval = cmp.Or(cfg.Interval, 5*time.Second)
	cfg.Concurrency = cmp.Or(cfg.Concurrency, 32)
	cfg.Budget = cmp.Or(cfg.Budget, 120*time.Second)
	cfg.Renew = cmp.Or(cfg.Renew, 30*time.Second)
	cfg.Log = cmp.Or(cfg.Log, slog.Default())
	return &Worker{cfg: cfg, seats: newSeats(cfg.Concurrency), turns: service.Turns{Most: perWorkspace}}, nil
}

// Run works until ctx ends. A database that is away is asked again next round.
func (w *Worker) Run(ctx context.Context) error {
	defer w.turns.Wait()
	ticker := time.NewTicker(w.cfg.Interval)
	defer ticker.Stop()
	for {
		w.sweep(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-w.cfg.Wake:
		case <-ticker.C:
		}
	}
}

// runOnce works off what is ready and returns when it is done.
func (w *Worker) runOnce(ctx context.Context) {
	w.sweep(ctx)
	w.turns.Wait()
}

// sweep starts a turn for every workspace that has something ready. It does not
// wait: a workspace with slow media holds up nobody but itself.
func (w *Worker) sweep(ctx context.Context) {
	workspaces, err := w.cfg.Queue.ReadySubmissionWorkspaces(ctx, workspacesPerRound)
	w.outage.Report(ctx, w.cfg.Log, "submissions", err)
	for _, workspace := range workspaces {
		w.turns.Start(workspace, func() {
			if err := w.turn(ctx, workspace); err != nil && ctx.Err() == nil {
				w.cfg.Log.WarnContext(ctx, "submission.interrupted", "workspace_id", workspace, "error", err)
			}
		})
	}
}

// turn works off a workspace's submissions one by one.
func (w *Worker) turn(ctx context.Context, workspace string) error {
	for {
		if worked, err := w.next(ctx, workspace); err != nil || !worked {
			return err
		}
	}
}

func (w *Worker) next(ctx context.Context, workspace string) (worked bool, err error) {
	claimed, err := w.cfg.Queue.ClaimSubmissions(ctx, workspace, w.cfg.RunID, 1)
	if err != nil {
		return false, fmt.Errorf("claim submissions ws=%s: %w", workspace, err)
	}
	for _, submission := range claimed {
		if err := w.work(ctx, submission); err != nil {
			return false, err
		}
	}
	return len(claimed) > 0, nil
}

// work takes one submission from its claim to its commit, and logs it.
func (w *Worker) work(ctx context.Context, s Submission) error {
	started := time.Now()
	result, err := w.fetchAll(ctx, s)
	var answer json.RawMessage
	if err == nil {
		answer, err = w.commit(ctx, s, result)
	}
	if err != nil {
		return fmt.Errorf("submission ws=%s id=%s: %w", s.WorkspaceID, s.SubmissionID, err)
	}
	attributes := []any{
		"workspace_id", s.WorkspaceID, "submission_id", s.SubmissionID, "attempt", s.Attempt,
		"media", len(result.Media), "ok", result.OK, "duration_ms", time.Since(started).Milliseconds(),
	}
	if e := result.Error; e != nil {
		attributes = append(attributes, "category", e.Category, "code", e.Code, "message", e.Message)
	}
	w.cfg.Log.InfoContext(ctx, "submission.attempted", append(attributes, "answer", string(answer))...)
	return nil
}

func (w *Worker) commit(ctx context.Context, s Submission, result outcome) (json.RawMessage, error) {
	raw, err := json.Marshal(result)
	if err != nil {
		return nil, fmt.Errorf("encode outcome: %w", err)
	}
	crash.Here(crash.MediaStored)
	answer, err := w.cfg.Queue.CommitSubmission(ctx, s.WorkspaceID, s.SubmissionID, s.ClaimToken, raw)
	if err != nil {
		return nil, fmt.Errorf("commit: %w", err)
	}
	return answer, nil
}

// fetchAll brings the submission's media into the origin. What failed of a medium
// is part of the outcome; an error means that there is no outcome to commit.
func (w *Worker) fetchAll(ctx context.Context, s Submission) (outcome, error) {
	list, refused := mediaToFetch(s.RawPayload)
	if refused != nil {
		return outcome{Error: refused}, nil
	}
	ours, lost := context.WithCancelCause(ctx)
	defer lost(nil)
	go w.hold(ours, s, lost)
	// The lease is kept while it waits for a seat; the time that it may take begins with it.
	parties := []string{"workspace " + s.WorkspaceID, "host " + hostOf(list)}
	if err := w.seats.take(ours, parties...); err != nil {
		return outcome{}, err
	}
	defer w.seats.leave(parties...)
	inTime, cancel := context.WithTimeout(ours, w.cfg.Budget)
	defer cancel()
	group, each := errgroup.WithContext(inTime)
	group.SetLimit(mediaAtOnce)
	result := outcome{OK: true, Media: make([]placed, len(list))}
	for i, item := range list {
		group.Go(func() error {
			origin, failed := w.cfg.Fetcher.Fetch(each, item.url, item.kind)
			if failed != nil {
				return &mediumError{index: item.index, failure: *failed}
			}
			if err := w.register(each, s, item.index, origin); err != nil {
				return err
			}
			result.Media[i] = placed{Index: item.index, BlobRef: origin.BlobRef}
			return nil
		})
	}
	err := group.Wait()
	if ours.Err() != nil {
		return outcome{}, context.Cause(ours) // stopping, or too late: the next worker starts over
	}
	if medium, ok := errors.AsType[*mediumError](err); ok {
		failure := medium.failure
		failure.Message = fmt.Sprintf("media[%d]: %s", medium.index, failure.Message)
		return outcome{Error: &failure}, nil
	}
	if err != nil {
		return outcome{}, err
	}
	return result, nil
}

// register records what was fetched; what speaks against it is the medium's failure.
func (w *Worker) register(ctx context.Context, s Submission, index int, origin media.Origin) error {
	err := w.cfg.Origins.Register(ctx, s.WorkspaceID, origin)
	if verdict := media.Verdict(err); verdict != nil {
		return &mediumError{index: index, failure: *verdict}
	}
	if err != nil {
		return fmt.Errorf("register %s: %w", origin.BlobRef, err)
	}
	return nil
}

// hold renews the lease until ctx ends; when the submission has become another
// worker's, it calls lost. A database that is away is asked again: the token keeps a
// late commit harmless.
func (w *Worker) hold(ctx context.Context, s Submission, lost context.CancelCauseFunc) {
	// LeaseUntil is the database's time: where this machine's clock is off so far that the
	// lease seems over, the configured period alone counts.
	period := w.cfg.Renew
	if left := time.Until(s.LeaseUntil); left > 0 {
		period = min(period, max(left/3, soonest))
	}
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if held, err := w.cfg.Queue.ExtendSubmission(ctx, s.WorkspaceID, s.SubmissionID, s.ClaimToken); err == nil && !held {
			lost(errLost)
		}
	}
}

// errLost says that another worker has the submission.
var errLost = errors.New("the lease was lost")

// mediumError carries a medium's failure out of the group that fetches it.
type mediumError struct {
	index   int
	failure autopost.Error
}

func (e *mediumError) Error() string { return e.failure.String() }
