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
	"autopost/internal/failpoint"
	"autopost/internal/media"
	"autopost/internal/worker"
)

// Config configures the submissions worker. Store, Origins, Fetcher and RunID are required.
type Config struct {
	Store   Store
	Origins Origins
	Fetcher MediaFetcher
	// RunID identifies this daemon in its leases.
	RunID string
	// Wake starts a poll at once; nil means that only Interval does.
	Wake <-chan struct{}
	// Interval between polls if nothing wakes the worker; 5 s by default.
	Interval time.Duration
	// Concurrency is how many submissions are fetched at once; 32 by default.
	Concurrency int
	// Budget is the longest time for the media of one submission; 120 s by default.
	Budget time.Duration
	// Renew is the longest time between two renewals of a lease; 30 s by default. A lease is also renewed after a
	// third of its time.
	Renew time.Duration
	// Log is slog.Default() by default.
	Log *slog.Logger
}

const (
	workspacesPerPoll = 100
	// mediaAtOnce is how many media of one submission are fetched at once.
	mediaAtOnce = 3
	// perWorkspace is how many submissions of a workspace are claimed at once, so that a slow medium does not block
	// the posts behind it.
	perWorkspace = 4
	// minRenew is the shortest time between two renewals of a lease.
	minRenew = 200 * time.Millisecond
)

// Worker fetches the media of submissions and commits the submissions. It has no state: after a crash another worker
// claims its submissions when their leases end.
type Worker struct {
	cfg Config
	// share divides Concurrency among workspaces and hosts.
	share *worker.FairShare[string]
	runs  worker.PerKey
}

// NewWorker checks the configuration and fills in its defaults.
func NewWorker(cfg Config) (*Worker, error) {
	if cfg.Store == nil || cfg.Origins == nil || cfg.Fetcher == nil || cfg.RunID == "" {
		return nil, errors.New("submissions worker: store, origins, fetcher and run id are required")
	}
	cfg.Interval = cmp.Or(cfg.Interval, 5*time.Second)
	cfg.Concurrency = cmp.Or(cfg.Concurrency, 32)
	cfg.Budget = cmp.Or(cfg.Budget, 120*time.Second)
	cfg.Renew = cmp.Or(cfg.Renew, 30*time.Second)
	cfg.Log = cmp.Or(cfg.Log, slog.Default())
	return &Worker{cfg: cfg, share: worker.NewFairShare[string](cfg.Concurrency, nil), runs: worker.PerKey{Most: perWorkspace}}, nil
}

// Run works until ctx ends.
func (w *Worker) Run(ctx context.Context) error {
	defer w.runs.Wait()
	return worker.Loop{Poll: w.poll, Interval: w.cfg.Interval, Wake: w.cfg.Wake, Log: w.cfg.Log, Name: "submissions"}.Run(ctx)
}

// runOnce processes what is ready and returns when that is done.
func (w *Worker) runOnce(ctx context.Context) {
	_, _ = w.poll(ctx)
	w.runs.Wait()
}

// poll starts the processing of every workspace that has submissions. It does not wait: slow media delay only their
// own workspace.
func (w *Worker) poll(ctx context.Context) (time.Duration, error) {
	workspaces, err := w.cfg.Store.ReadySubmissionWorkspaces(ctx, workspacesPerPoll)
	for _, workspace := range workspaces {
		w.runs.Start(ctx, workspace, func() {
			if err := w.process(ctx, workspace); err != nil && ctx.Err() == nil {
				w.cfg.Log.WarnContext(ctx, "submission.interrupted", "workspace_id", workspace, "error", err)
			}
		})
	}
	return 0, err
}

// process works through the submissions of a workspace one by one.
func (w *Worker) process(ctx context.Context, workspace string) error {
	for {
		if worked, err := w.next(ctx, workspace); err != nil || !worked {
			return err
		}
	}
}

func (w *Worker) next(ctx context.Context, workspace string) (worked bool, err error) {
	claimed, err := w.cfg.Store.ClaimSubmissions(ctx, workspace, w.cfg.RunID, 1)
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

// work fetches, commits and logs one claimed submission.
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
	failpoint.Hit(failpoint.MediaStored)
	answer, err := w.cfg.Store.CommitSubmission(ctx, s.WorkspaceID, s.SubmissionID, s.ClaimToken, raw)
	if err != nil {
		return nil, fmt.Errorf("commit: %w", err)
	}
	return answer, nil
}

// fetchAll stores the media of the submission. A failed medium is part of the outcome; an error means that there is
// no outcome to commit.
func (w *Worker) fetchAll(ctx context.Context, s Submission) (outcome, error) {
	list, refused := mediaToFetch(s.RawPayload)
	if refused != nil {
		return outcome{Error: refused}, nil
	}
	ours, lost := context.WithCancelCause(ctx)
	defer lost(nil)
	go worker.Task(ctx, func() { w.hold(ours, s, lost) })()
	// The lease is renewed while the submission waits for capacity. Its budget starts after that.
	keys := []string{"workspace " + s.WorkspaceID, "host " + hostOf(list)}
	if err := w.share.Acquire(ours, keys...); err != nil {
		return outcome{}, err
	}
	defer w.share.Release(1, keys...)
	inTime, cancel := context.WithTimeout(ours, w.cfg.Budget)
	defer cancel()
	group, each := errgroup.WithContext(inTime)
	group.SetLimit(mediaAtOnce)
	result := outcome{OK: true, Media: make([]placed, len(list))}
	for i, item := range list {
		group.Go(worker.Contained(ctx, func() error {
			origin, failed := w.cfg.Fetcher.Fetch(each, item.url, item.kind)
			if failed != nil {
				return &mediumError{index: item.index, failure: *failed}
			}
			if err := w.register(each, s, item.index, origin); err != nil {
				return err
			}
			result.Media[i] = placed{Index: item.index, BlobRef: origin.BlobRef}
			if item.kind == autopost.MediaFile || item.kind == autopost.MediaAudio {
				result.Media[i].Filename = origin.Filename
			}
			return nil
		}))
	}
	err := group.Wait()
	if ours.Err() != nil {
		return outcome{}, context.Cause(ours) // the worker stops, or lost the lease: the next worker starts again
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

// register registers a fetched medium. A refusal is the failure of the medium.
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

// hold renews the lease until ctx ends. It calls lost if another worker has the submission. It ignores errors: a late
// commit is harmless because of the token.
func (w *Worker) hold(ctx context.Context, s Submission, lost context.CancelCauseFunc) {
	// LeaseUntil is a time of the database. If the local clock is so wrong that the lease seems over, only the
	// configured period counts.
	period := w.cfg.Renew
	if left := time.Until(s.LeaseUntil); left > 0 {
		period = min(period, max(left/3, minRenew))
	}
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if held, err := w.cfg.Store.ExtendSubmission(ctx, s.WorkspaceID, s.SubmissionID, s.ClaimToken); err == nil && !held {
			lost(errLost)
		}
	}
}

// errLost means that another worker has the submission.
var errLost = errors.New("the lease was lost")

// mediumError returns the failure of a medium from the errgroup.
type mediumError struct {
	index   int
	failure autopost.Error
}

func (e *mediumError) Error() string { return e.failure.String() }
