package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"autopost/internal/config"
	"autopost/internal/dispatch"
	"autopost/internal/ingest/pull"
	"autopost/internal/pg"
	"autopost/internal/service"
	"autopost/internal/telemetry"
)

// watch is what a daemon tells of itself: metrics on its own listener or the common one, and traces where they are wanted.
type watch struct {
	*telemetry.Watch

	traces   *telemetry.Traces
	listener net.Listener // nil: on the common one
	// dispatches says that the daemon has a dispatcher, whose rounds tell whether it is alive.
	dispatches bool
}

func newWatch(ctx context.Context, cfg config.Config, log *slog.Logger) (*watch, error) {
	w := &watch{}
	var err error
	if cfg.TracesEndpoint != "" {
		if w.traces, err = telemetry.OpenTraces(ctx, cfg.TracesEndpoint, log); err != nil {
			return nil, err
		}
	}
	w.Watch = telemetry.NewWatch(w.traces)
	if cfg.MetricsListen != "" {
		if w.listener, err = new(net.ListenConfig).Listen(ctx, "tcp", cfg.MetricsListen); err != nil {
			return nil, fmt.Errorf("AUTOPOST_METRICS_LISTEN: %w", err)
		}
	}
	return w, nil
}

// observe adds what is only known by asking the database.
func (w *watch) observe(store *pg.Store) {
	w.Queue(func(ctx context.Context) ([]telemetry.QueueLine, error) {
		lines, err := store.QueueMetrics(ctx)
		return convert(lines, func(x pg.QueueLine) telemetry.QueueLine { return telemetry.QueueLine(x) }), err
	})
	w.Connections(func() telemetry.Pool {
		inUse, idle, most := store.Connections()
		return telemetry.Pool{InUse: inUse, Idle: idle, Most: most}
	})
}

// mount serves /metrics on the common listener, unless it has one of its own.
func (w *watch) mount(mux *http.ServeMux) {
	if w.listener == nil {
		mux.Handle("GET /metrics", w.Handler())
	}
}

// serve adds the listener of the metrics to what runs, where there is one.
func (w *watch) serve(group *service.Group) {
	if w.listener == nil {
		return
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", w.Handler())
	group.Add("metrics", service.Func(func(ctx context.Context) error { return serveHTTP(ctx, w.listener, mux) }))
}

// lastSpans is how long the collector has to take what is left when the daemon ends.
const lastSpans = 5 * time.Second

func (w *watch) close() {
	if w == nil {
		return
	}
	if w.listener != nil {
		_ = w.listener.Close() // closed already when Run has ended
	}
	ctx, cancel := context.WithTimeout(context.Background(), lastSpans)
	defer cancel()
	_ = w.traces.Close(ctx) // a collector that is away keeps nobody
}

// area is what a request is for, in few words.
func area(path string) string {
	switch {
	case strings.HasPrefix(path, "/hooks/"):
		return "push"
	case strings.HasPrefix(path, "/api/"):
		return "api"
	}
	return "other"
}

// The types below tell the watch what goes through a store.

type watchedPush struct {
	pushStore

	watch *telemetry.Watch
}

func (s watchedPush) ReceivePush(ctx context.Context, workspace, endpoint string, items json.RawMessage) (json.RawMessage, error) {
	asked := time.Now()
	answer, err := s.pushStore.ReceivePush(ctx, workspace, endpoint, items)
	tellPush(ctx, s.watch, telemetry.Push{WorkspaceID: workspace, EndpointID: endpoint, Asked: asked}, answer, err)
	return answer, err
}

type watchedSigned struct {
	signedStore

	watch *telemetry.Watch
}

func (s watchedSigned) ReceiveSignedPush(ctx context.Context, workspace, endpoint, id string, items json.RawMessage) (json.RawMessage, error) {
	asked := time.Now()
	answer, err := s.signedStore.ReceiveSignedPush(ctx, workspace, endpoint, id, items)
	tellPush(ctx, s.watch, telemetry.Push{WorkspaceID: workspace, EndpointID: endpoint, Asked: asked}, answer, err)
	return answer, err
}

// tellPush reads of the database's answer what is counted.
func tellPush(ctx context.Context, w *telemetry.Watch, p telemetry.Push, answer json.RawMessage, err error) {
	var told struct{ Results []telemetry.Post }
	if err != nil || json.Unmarshal(answer, &told) != nil {
		return
	}
	p.Began, p.Answered, p.Posts = telemetry.Began(ctx), time.Now(), told.Results
	w.Pushed(ctx, p)
}

type watchedDispatch struct {
	dispatchStore

	watch *telemetry.Watch
}

func (s watchedDispatch) StartCallBatch(ctx context.Context, workspace string, claims []dispatch.Claim) ([]dispatch.Start, error) {
	s.watch.Batch("start_call_batch", len(claims))
	return s.dispatchStore.StartCallBatch(ctx, workspace, claims)
}

func (s watchedDispatch) CommitOutcomeBatch(ctx context.Context, workspace string, settlements []dispatch.Settlement) ([]dispatch.Commit, error) {
	s.watch.Batch("commit_outcome_batch", len(settlements))
	return s.dispatchStore.CommitOutcomeBatch(ctx, workspace, settlements)
}

type watchedSubmissions struct {
	submissionStore

	watch *telemetry.Watch
}

func (s watchedSubmissions) CommitSubmission(ctx context.Context, workspace, id, token string, outcome json.RawMessage) (json.RawMessage, error) {
	answer, err := s.submissionStore.CommitSubmission(ctx, workspace, id, token, outcome)
	var told struct{ Status string }
	if err == nil && json.Unmarshal(answer, &told) == nil {
		s.watch.Submitted(told.Status)
	}
	return answer, err
}

type watchedLeases struct {
	*pg.Store

	watch *telemetry.Watch
}

func (s watchedLeases) RecoverSendingLeases(ctx context.Context, workspace string) (int, error) {
	n, err := s.Store.RecoverSendingLeases(ctx, workspace)
	s.watch.Recovered("sending", n)
	return n, err
}

func (s watchedLeases) RecoverClaimedLeases(ctx context.Context, workspace string) (int, error) {
	n, err := s.Store.RecoverClaimedLeases(ctx, workspace)
	s.watch.Recovered("claimed", n)
	return n, err
}

type watchedFetcher struct {
	pull.Fetcher

	kind  string
	watch *telemetry.Watch
}

func watchedFetchers(w *telemetry.Watch, fetchers map[string]pull.Fetcher) map[string]pull.Fetcher {
	watched := make(map[string]pull.Fetcher, len(fetchers))
	for kind, fetcher := range fetchers {
		watched[kind] = watchedFetcher{fetcher, kind, w}
	}
	return watched
}

func (f watchedFetcher) Fetch(ctx context.Context, source pull.Source) (pull.Batch, error) {
	batch, err := f.Fetcher.Fetch(ctx, source)
	outcome := "items"
	switch {
	case err != nil:
		outcome = "failed"
	case len(batch.Items) == 0:
		outcome = "nothing"
	}
	f.watch.Polled(f.kind, outcome)
	return batch, err
}
