package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"autopost/internal/config"
	"autopost/internal/ingest/pull"
	"autopost/internal/pg"
	"autopost/internal/telemetry"
	"autopost/internal/worker"
)

// watch has the recorder of a daemon, its traces, and the listener of /metrics.
type watch struct {
	*telemetry.Recorder

	traces   *telemetry.Traces
	listener net.Listener // nil: the common listener
	// dispatches means that the daemon has a dispatcher, whose polls readiness checks.
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
	w.Recorder = telemetry.NewRecorder(w.traces)
	if cfg.MetricsListen != "" {
		if w.listener, err = new(net.ListenConfig).Listen(ctx, "tcp", cfg.MetricsListen); err != nil {
			return nil, fmt.Errorf("AUTOPOST_METRICS_LISTEN: %w", err)
		}
	}
	return w, nil
}

// observe adds the metrics that need the database.
func (w *watch) observe(store *pg.Store) {
	w.Queue(store.QueueMetrics)
	w.XPosts(store.XPostMetrics)
	w.Bots(store.BotMetrics)
	w.Connections(func() telemetry.Pool {
		inUse, idle, most := store.Connections()
		return telemetry.Pool{InUse: inUse, Idle: idle, Most: most}
	})
}

// mount serves /metrics on the common listener to the own machine, unless there is a listener for metrics.
func (w *watch) mount(mux *http.ServeMux) {
	if w.listener == nil {
		mux.Handle("GET /metrics", localOnly(w.Handler()))
	}
}

// forwarded are the headers by which a proxy marks a request of another machine.
var forwarded = []string{"Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip"}

// localOnly serves requests from loopback addresses that no proxy forwarded. All others get 404.
func localOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from, err := netip.ParseAddrPort(r.RemoteAddr)
		local := err == nil && from.Addr().Unmap().IsLoopback()
		for _, name := range forwarded {
			local = local && r.Header.Get(name) == ""
		}
		if !local {
			http.NotFound(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// serve adds the listener of the metrics, if there is one.
func (w *watch) serve(group *worker.Supervisor) {
	if w.listener == nil {
		return
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", w.Handler())
	group.Add("metrics", worker.Func(func(ctx context.Context) error { return serveHTTP(ctx, w.listener, mux) }))
}

// closeTimeout bounds the delivery of the last spans.
const closeTimeout = 5 * time.Second

func (w *watch) close() {
	if w == nil {
		return
	}
	if w.listener != nil {
		_ = w.listener.Close() // Run may have closed it
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_ = w.traces.Close(ctx) // an unavailable collector must not delay the end
}

// area is the metric label of a request path.
func area(path string) string {
	switch {
	case strings.HasPrefix(path, "/hooks/"):
		return "push"
	case strings.HasPrefix(path, "/api/"):
		return "api"
	}
	return "other"
}

// The types below record the calls of a store.

type instrumentedPush struct {
	*pg.Store

	watch *telemetry.Recorder
}

func (s instrumentedPush) ReceivePush(ctx context.Context, workspace, endpoint string, items json.RawMessage) (json.RawMessage, error) {
	asked := time.Now()
	answer, err := s.Store.ReceivePush(ctx, workspace, endpoint, items)
	recordPush(ctx, s.watch, telemetry.Push{WorkspaceID: workspace, EndpointID: endpoint, Asked: asked}, answer, err)
	return answer, err
}

func (s instrumentedPush) ReceiveSignedPush(ctx context.Context, workspace, endpoint, id string, items json.RawMessage) (json.RawMessage, error) {
	asked := time.Now()
	answer, err := s.Store.ReceiveSignedPush(ctx, workspace, endpoint, id, items)
	recordPush(ctx, s.watch, telemetry.Push{WorkspaceID: workspace, EndpointID: endpoint, Asked: asked}, answer, err)
	return answer, err
}

// recordPush records the results of a push.
func recordPush(ctx context.Context, w *telemetry.Recorder, p telemetry.Push, answer json.RawMessage, err error) {
	var answered struct{ Results []telemetry.Post }
	if err != nil || json.Unmarshal(answer, &answered) != nil {
		return
	}
	p.Began, p.Answered, p.Posts = telemetry.Began(ctx), time.Now(), answered.Results
	w.Pushed(ctx, p)
}

type instrumentedSubmissions struct {
	*pg.Store

	watch *telemetry.Recorder
}

func (s instrumentedSubmissions) CommitSubmission(ctx context.Context, workspace, id, token string, outcome json.RawMessage) (json.RawMessage, error) {
	answer, err := s.Store.CommitSubmission(ctx, workspace, id, token, outcome)
	var answered struct{ Status string }
	if err == nil && json.Unmarshal(answer, &answered) == nil {
		s.watch.Submitted(answered.Status)
	}
	return answer, err
}

type instrumentedFetcher struct {
	pull.Fetcher

	kind  string
	watch *telemetry.Recorder
}

func instrumentedFetchers(w *telemetry.Recorder, fetchers map[string]pull.Fetcher) map[string]pull.Fetcher {
	wrapped := make(map[string]pull.Fetcher, len(fetchers))
	for kind, fetcher := range fetchers {
		wrapped[kind] = instrumentedFetcher{fetcher, kind, w}
	}
	return wrapped
}

func (f instrumentedFetcher) Fetch(ctx context.Context, source pull.Source) (pull.Batch, error) {
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
