package telemetry

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"autopost"
)

// Recorder receives events and writes metrics and traces. A nil Recorder ignores them. Its size grows with platforms and
// functions, never with workspaces, channels or posts.
type Recorder struct {
	registry *prometheus.Registry
	metrics  metrics
	traces   *Traces
	lastPoll atomic.Int64 // nanoseconds since 1970 of the dispatcher's last poll
}

// NewRecorder makes a Recorder with its own registry; traces may be nil.
func NewRecorder(traces *Traces) *Recorder {
	r := &Recorder{registry: prometheus.NewRegistry(), metrics: newMetrics(), traces: traces}
	r.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collectors.NewBuildInfoCollector())
	r.registry.MustRegister(r.metrics.all()...)
	return r
}

const (
	// scrapeTimeout bounds one answer; maxScrapes bounds the concurrent ones.
	scrapeTimeout = 10 * time.Second
	maxScrapes    = 4
)

// Handler answers GET /metrics in the format that the scraper requests.
func (r *Recorder) Handler() http.Handler {
	return promhttp.HandlerFor(r.registry, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, Timeout: scrapeTimeout, MaxRequestsInFlight: maxScrapes,
	})
}

// Poll records that the dispatcher polls.
func (r *Recorder) Poll() {
	if r != nil {
		r.lastPoll.Store(time.Now().UnixNano())
	}
}

// LastPoll is the time of the dispatcher's last poll; ok is false before the first.
func (r *Recorder) LastPoll() (at time.Time, ok bool) {
	nanos := r.lastPoll.Load()
	return time.Unix(0, nanos), nanos != 0
}

// Batch records that one call of a function of ours passed or returned n items.
func (r *Recorder) Batch(function string, n int) {
	if r != nil {
		r.metrics.batch.WithLabelValues(function).Observe(float64(n))
	}
}

// Started records the answer to a start request: applied, the reason of a refusal, or err if there was no answer.
func (r *Recorder) Started(applied bool, reason string, err error) {
	if r == nil {
		return
	}
	answer := reason
	switch {
	case err != nil:
		answer = "unanswered"
	case applied:
		answer = "applied"
	}
	r.metrics.starts.WithLabelValues(answer).Inc()
}

// InFlight records that a delivery is in flight until done is called.
func (r *Recorder) InFlight() (done func()) {
	if r == nil {
		return func() {}
	}
	r.metrics.inFlight.Inc()
	return r.metrics.inFlight.Dec
}

// Recovered counts deliveries whose lease of this kind a monitor ended.
func (r *Recorder) Recovered(lease string, n int) {
	if r != nil {
		r.metrics.recovered.WithLabelValues(lease).Add(float64(n))
	}
}

// Panicked counts a panic in a stage of this daemon.
func (r *Recorder) Panicked(stage string) {
	if r != nil {
		r.metrics.panics.WithLabelValues(stage).Inc()
	}
}

// Noticed counts a message to an alert target; a nil failure means that it was sent.
func (r *Recorder) Noticed(failure *autopost.Error) {
	if r == nil {
		return
	}
	result := "sent"
	if failure != nil {
		result = "failed"
	}
	r.metrics.notices.WithLabelValues(result).Inc()
}

// Polled records the outcome of a poll of a source of this kind: items, nothing or failed.
func (r *Recorder) Polled(kind, outcome string) {
	if r != nil {
		r.metrics.polls.WithLabelValues(kind, outcome).Inc()
	}
}

// Submitted records the status of a submission after an attempt to fetch its media.
func (r *Recorder) Submitted(status string) {
	if r != nil {
		r.metrics.submissions.WithLabelValues(status).Inc()
	}
}

// Query records the duration of one call of a database function. failed means that the database refused it or did not
// answer.
func (r *Recorder) Query(function string, took time.Duration, failed bool) {
	if r == nil {
		return
	}
	r.metrics.database.WithLabelValues(function).Observe(took.Seconds())
	if failed {
		r.metrics.databaseErrors.WithLabelValues(function).Inc()
	}
}

// Push is one request at a push endpoint, and its result.
type Push struct {
	// Began is the arrival of the request; Asked and Answered are the start and the end of the database call.
	Began, Asked, Answered time.Time
	WorkspaceID            string
	EndpointID             string
	Posts                  []Post
}

// Post is the result of one pushed post.
type Post struct {
	Status   string `json:"status"`
	TraceID  string `json:"trace_id"`
	Enqueued int    `json:"enqueued"`
	Deduped  int    `json:"deduped"`
	Invalid  int    `json:"invalid"`
	Skipped  int    `json:"skipped"`
}

// Pushed records a push.
func (r *Recorder) Pushed(ctx context.Context, p Push) {
	if r == nil {
		return
	}
	for _, post := range p.Posts {
		r.metrics.posts.WithLabelValues(post.Status).Inc()
		for verdict, n := range map[string]int{"enqueued": post.Enqueued, "deduped": post.Deduped, "invalid": post.Invalid, "skipped": post.Skipped} {
			r.metrics.deliveries.WithLabelValues(verdict).Add(float64(n))
		}
	}
	r.traces.pushed(ctx, p)
}
