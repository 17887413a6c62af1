package filebus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"autopost/internal/ingest/pull"
	"autopost/internal/worker"
)

// Config configures the stage. Store, Contents, Keys and RunID are required.
type Config struct {
	Store    Store
	Contents Contents
	Keys     Keys
	// Finder asks platforms about unreadable state files; nil: a person does.
	Finder Finder
	// RunID identifies this daemon in its leases.
	RunID string
	// Wake starts a poll at once; nil means that only Interval does.
	Wake <-chan struct{}
	// Interval between polls if nothing wakes the stage; 5 s by default.
	Interval time.Duration
	// Patience is how long a half-written file is tried; 60 s by default.
	Patience time.Duration
	// Log is slog.Default() by default.
	Log *slog.Logger

	// fault fails steps of writes in a test.
	fault func(step, name string) error
}

const (
	// settleTime is the least age of an artifact: a younger one may still be written.
	settleTime = 2 * time.Second
	// retryTime is the pause before a source is scanned again because something was not ready.
	retryTime = 2 * time.Second
	// lookupPause is the pause between two questions to a platform about one job.
	lookupPause = 5 * time.Minute
	// defaultMaxBytes is max_bytes of a source that sets none.
	defaultMaxBytes = 16 << 30
)

// Stage scans folders.
type Stage struct {
	cfg   Config
	wake  chan struct{}
	scans worker.PerKey

	mu sync.Mutex
	// known is what this daemon remembers of each source; changed are the sources to scan, and since when.
	known   map[string]*memory
	changed map[string]time.Time
	watcher *watcher
}

// memory is what is remembered of a source between two scans. Only its scan uses it. Losing it costs work only.
type memory struct {
	// jobs are the marks of finished work, by job and platform; approvals are those of files that need no work.
	jobs, approvals map[string]string
	// since is when a half-written file was seen first, by name and digest.
	since map[string]time.Time
	// asked is the time of the last question to a platform, by job.
	asked map[string]time.Time
}

// New checks the configuration and fills in its defaults.
func New(cfg Config) (*Stage, error) {
	if cfg.Store == nil || cfg.Contents == nil || cfg.Keys == nil || cfg.RunID == "" {
		return nil, errors.New("files: store, contents, keys and run id are required")
	}
	cfg.Interval = cmp.Or(cfg.Interval, 5*time.Second)
	cfg.Patience = cmp.Or(cfg.Patience, time.Minute)
	cfg.Log = cmp.Or(cfg.Log, slog.Default())
	return &Stage{cfg: cfg, wake: make(chan struct{}, 1), known: map[string]*memory{}, changed: map[string]time.Time{}}, nil
}

// Run works until ctx ends.
func (s *Stage) Run(ctx context.Context) error {
	defer s.scans.Wait()
	s.watcher = newWatcher(ctx, s.touched, s.cfg.Log)
	defer s.watcher.Close()
	go worker.Task(ctx, func() { s.forward(ctx) })()
	return worker.Loop{Poll: s.poll, Interval: s.cfg.Interval, Wake: s.wake, Log: s.cfg.Log, Name: "files"}.Run(ctx)
}

// forward passes wake-ups of the database on.
func (s *Stage) forward(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case _, open := <-s.cfg.Wake:
			if !open {
				return
			}
			worker.Wake(s.wake)
		}
	}
}

// touched notes that a folder of a source changed.
func (s *Stage) touched(key string) {
	s.later(key, time.Now())
}

// later notes that a source is to be scanned at a time, or before. The loop wakes to wait no longer than that.
func (s *Stage) later(key string, at time.Time) {
	s.mu.Lock()
	if noted, ok := s.changed[key]; !ok || at.Before(noted) {
		s.changed[key] = at
	}
	s.mu.Unlock()
	worker.Wake(s.wake)
}

// runOnce scans what is due and returns when that is done.
func (s *Stage) runOnce(ctx context.Context) {
	_, _ = s.poll(ctx)
	s.scans.Wait()
}

// poll starts a scan of each source that is due or has changed. It does not wait.
func (s *Stage) poll(ctx context.Context) (time.Duration, error) {
	sources, err := s.cfg.Store.ListFileSources(ctx)
	if err != nil {
		return 0, fmt.Errorf("list file sources: %w", err)
	}
	listed := map[string]bool{}
	for _, source := range sources {
		listed[source.key()] = true
		if !source.Due && !s.due(source.key()) {
			continue
		}
		s.scans.Start(ctx, source.key(), func() { s.scanOnce(ctx, source) })
	}
	return s.next(listed), nil
}

// due reports whether a source changed, or is new to this daemon.
func (s *Stage) due(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, noted := s.changed[key]
	return s.known[key] == nil || noted && !at.After(time.Now())
}

// next forgets sources that are gone, and returns the time until the next noted scan; 0 if none is noted.
func (s *Stage) next(listed map[string]bool) (pause time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.known, func(key string, _ *memory) bool { return !listed[key] })
	maps.DeleteFunc(s.changed, func(key string, _ time.Time) bool { return !listed[key] })
	for _, at := range s.changed {
		left := max(time.Until(at), 100*time.Millisecond)
		if pause == 0 || left < pause {
			pause = left
		}
	}
	return min(pause, s.cfg.Interval)
}

// begin takes the memory of a source for a scan.
func (s *Stage) begin(key string) *memory {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.changed, key)
	if s.known[key] == nil {
		s.known[key] = &memory{jobs: map[string]string{}, approvals: map[string]string{}, since: map[string]time.Time{}, asked: map[string]time.Time{}}
	}
	return s.known[key]
}

// scanOnce claims and scans a source, and records the end.
func (s *Stage) scanOnce(ctx context.Context, source Source) {
	known := s.begin(source.key())
	claim, err := s.cfg.Store.ClaimFileSource(ctx, source.WorkspaceID, source.SourceID, s.cfg.RunID)
	if err == nil && !claim.Applied {
		s.later(source.key(), time.Now().Add(s.cfg.Interval)) // another daemon scans it, or it was disabled
		return
	}
	if err == nil {
		sc := newScan(s, source, claim, known)
		err = worker.Contained(ctx, func() error { return sc.run(ctx) })()
		if err == nil {
			err = s.cfg.Store.EndFileScan(ctx, source.WorkspaceID, source.SourceID, sc.refusedPaths())
		}
		if sc.again {
			s.later(source.key(), time.Now().Add(retryTime))
		}
	}
	if err == nil || ctx.Err() != nil {
		return
	}
	s.cfg.Log.WarnContext(ctx, "files.scan_failed", "workspace_id", source.WorkspaceID, "source_id", source.SourceID, "error", err)
	failure, ok := errors.AsType[*pull.Failure](err)
	if !ok {
		// The database or the media store failed, not the folder: the scan is repeated soon.
		s.later(source.key(), time.Now().Add(retryTime))
		return
	}
	if err := s.cfg.Store.FailPoll(ctx, source.WorkspaceID, source.SourceID, *failure); err != nil {
		s.cfg.Log.WarnContext(ctx, "files.failure_not_recorded", "workspace_id", source.WorkspaceID, "source_id", source.SourceID, "error", err)
	}
}
