package telemetry

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Watch is told what happens and makes metrics and traces of it. A nil Watch hears
// nothing. What it keeps grows with platforms and functions, never with workspaces,
// channels or posts.
type Watch struct {
	registry *prometheus.Registry
	metrics  metrics
	traces   *Traces
	round    atomic.Int64 // nanoseconds since 1970 of the dispatcher's last round
}

// NewWatch makes a Watch with a registry of its own; traces may be nil.
func NewWatch(traces *Traces) *Watch {
	w := &Watch{registry: prometheus.NewRegistry(), metrics: newMetrics(), traces: traces}
	w.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collectors.NewBuildInfoCollector())
	w.registry.MustRegister(w.metrics.all()...)
	return w
}

const (
	// scrapeTimeout bounds one answer, scrapesAtOnce how many are made at a time.
	scrapeTimeout = 10 * time.Second
	scrapesAtOnce = 4
)

// Handler answers GET /metrics in the format that the scraper asks for.
func (w *Watch) Handler() http.Handler {
	return promhttp.HandlerFor(w.registry, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, Timeout: scrapeTimeout, MaxRequestsInFlight: scrapesAtOnce,
	})
}

// Round says that the dispatcher has looked for work.
func (w *Watch) Round() {
	if w != nil {
		w.round.Store(time.Now().UnixNano())
	}
}

// LastRound is when the dispatcher last looked for work; ok is false before it first did.
func (w *Watch) LastRound() (at time.Time, ok bool) {
	nanos := w.round.Load()
	return time.Unix(0, nanos), nanos != 0
}

// Batch says that one call of a function of ours took or gave n things.
func (w *Watch) Batch(function string, n int) {
	if w != nil {
		w.metrics.batch.WithLabelValues(function).Observe(float64(n))
	}
}

// Started says what became of the question whether a call may begin: it was applied, or not for a
// reason, or err kept it from being answered.
func (w *Watch) Started(applied bool, reason string, err error) {
	if w == nil {
		return
	}
	answer := reason
	switch {
	case err != nil:
		answer = "unanswered"
	case applied:
		answer = "applied"
	}
	w.metrics.starts.WithLabelValues(answer).Inc()
}

// InHand says that a delivery is worked on until the returned function is called.
func (w *Watch) InHand() (done func()) {
	if w == nil {
		return func() {}
	}
	w.metrics.inHand.Inc()
	return w.metrics.inHand.Dec
}

// Recovered says how many deliveries a monitor took back from leases of this kind.
func (w *Watch) Recovered(lease string, n int) {
	if w != nil {
		w.metrics.recovered.WithLabelValues(lease).Add(float64(n))
	}
}

// Polled says what a poll of a source of this kind came to: items, nothing or failed.
func (w *Watch) Polled(kind, outcome string) {
	if w != nil {
		w.metrics.polls.WithLabelValues(kind, outcome).Inc()
	}
}

// Submitted says what a try to fetch the media of a post came to, by the status that
// the database gave it.
func (w *Watch) Submitted(status string) {
	if w != nil {
		w.metrics.submissions.WithLabelValues(status).Inc()
	}
}

// Asked says how long one call of a database function took. failed says that the
// database did not answer it, or refused.
func (w *Watch) Asked(function string, took time.Duration, failed bool) {
	if w == nil {
		return
	}
	w.metrics.database.WithLabelValues(function).Observe(took.Seconds())
	if failed {
		w.metrics.databaseErrors.WithLabelValues(function).Inc()
	}
}

// Push is what became of one request at the door of posts.
type Push struct {
	// Began is when the request came, Asked and Answered when the database was asked for its posts and had answered.
	Began, Asked, Answered time.Time
	WorkspaceID            string
	EndpointID             string
	Posts                  []Post
}

// Post is what the database said of one post.
type Post struct {
	Status   string `json:"status"`
	TraceID  string `json:"trace_id"`
	Enqueued int    `json:"enqueued"`
	Deduped  int    `json:"deduped"`
	Invalid  int    `json:"invalid"`
	Skipped  int    `json:"skipped"`
}

// Pushed says what a push came to.
func (w *Watch) Pushed(ctx context.Context, p Push) {
	if w == nil {
		return
	}
	for _, post := range p.Posts {
		w.metrics.posts.WithLabelValues(post.Status).Inc()
		for verdict, n := range map[string]int{"enqueued": post.Enqueued, "deduped": post.Deduped, "invalid": post.Invalid, "skipped": post.Skipped} {
			w.metrics.deliveries.WithLabelValues(verdict).Add(float64(n))
		}
	}
	w.traces.pushed(ctx, p)
}
