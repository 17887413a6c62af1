package telemetry

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the instruments. Each label has few values: answers, platforms, our own functions.
type metrics struct {
	requests       *prometheus.CounterVec
	requestSeconds *prometheus.HistogramVec
	posts          *prometheus.CounterVec
	deliveries     *prometheus.CounterVec
	submissions    *prometheus.CounterVec
	polls          *prometheus.CounterVec
	batch          *prometheus.HistogramVec
	starts         *prometheus.CounterVec
	attempts       *prometheus.CounterVec
	callSeconds    *prometheus.HistogramVec
	firstByte      *prometheus.HistogramVec
	acceptance     *prometheus.HistogramVec
	slotLate       prometheus.Histogram
	inHand         prometheus.Gauge
	recovered      *prometheus.CounterVec
	database       *prometheus.HistogramVec
	databaseErrors *prometheus.CounterVec
	refusals       *prometheus.CounterVec
}

var (
	// quick is for what takes milliseconds, slow for what people wait for: both in seconds.
	quick = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10}
	slow  = []float64{.025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 21600}
	many  = []float64{0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000}
)

func newMetrics() metrics {
	return metrics{
		requests:       counter("autopost_http_requests_total", "HTTP requests, by part of the daemon (push, api, other) and status.", "area", "code"),
		requestSeconds: histogram("autopost_http_request_seconds", "Time to answer an HTTP request.", quick, "area"),
		posts:          counter("autopost_posts_total", "Posts at the door, by answer: enqueued, accepted, duplicate, rejected.", "answer"),
		deliveries:     counter("autopost_deliveries_total", "What pushed posts came to in channels: enqueued, deduped, invalid, skipped.", "verdict"),
		submissions:    counter("autopost_submissions_total", "Tries to fetch the media of a post, by the status they led to.", "status"),
		polls:          counter("autopost_polls_total", "Polls of sources, by kind and outcome: items, nothing, failed.", "kind", "outcome"),
		batch:          histogram("autopost_batch_size", "How many things one call of a function took or gave.", many, "function"),
		starts:         counter("autopost_starts_total", "Calls that were about to begin: applied, or why not (stale, rate, paused, …).", "answer"),
		attempts: counter("autopost_attempts_total", "Attempts, by platform, the status they led to (uncommitted and stale where none) and class of failure.",
			"platform", "outcome", "failure"),
		callSeconds: histogram("autopost_call_seconds", "Time that a platform's adapter took for one attempt.", slow, "platform"),
		firstByte: histogram("autopost_accept_to_first_byte_seconds",
			"From taking a post (or its scheduled time, if later) to its first call, of first attempts.", slow, "platform"),
		acceptance: histogram("autopost_accept_to_acceptance_seconds",
			"From taking a post (or its scheduled time, if later) to the platform's acceptance.", slow, "platform"),
		slotLate: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "autopost_slot_late_seconds", Help: "How long after its reserved rate slot a limited call began.", Buckets: quick}),
		inHand:         prometheus.NewGauge(prometheus.GaugeOpts{Name: "autopost_senders_in_use", Help: "Deliveries that this daemon is working on."}),
		recovered:      counter("autopost_leases_recovered_total", "Deliveries taken back from a holder that was gone, by lease: sending, claimed.", "lease"),
		database:       histogram("autopost_database_seconds", "Time of one call of a database function.", quick, "function"),
		databaseErrors: counter("autopost_database_errors_total", "Calls of a database function that failed.", "function"),
		refusals:       counter("autopost_disk_refusals_total", "Writes that failed because the disk of the database, or of the media, was full.", "disk"),
	}
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
}

func (m *metrics) all() []prometheus.Collector {
	return []prometheus.Collector{
		m.requests, m.requestSeconds, m.posts, m.deliveries, m.submissions, m.polls, m.batch, m.starts, m.attempts, m.callSeconds, m.firstByte,
		m.acceptance, m.slotLate, m.inHand, m.recovered, m.database, m.databaseErrors, m.refusals,
	}
}

// Served counts the requests that a handler answers; where names what they are for
// by their path, one of a few words.
func (w *Watch) Served(where func(path string) string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(answer http.ResponseWriter, r *http.Request) {
		began := time.Now()
		noted := &noted{ResponseWriter: answer, status: http.StatusOK}
		next.ServeHTTP(noted, r.WithContext(withBegan(r.Context(), began)))
		area := where(r.URL.Path)
		w.metrics.requests.WithLabelValues(area, strconv.Itoa(noted.status)).Inc()
		w.metrics.requestSeconds.WithLabelValues(area).Observe(time.Since(began).Seconds())
	})
}

// noted remembers the status that was answered.
type noted struct {
	http.ResponseWriter

	status int
}

// WriteHeader implements http.ResponseWriter.
func (n *noted) WriteHeader(status int) {
	n.status = status
	n.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach what is behind.
func (n *noted) Unwrap() http.ResponseWriter { return n.ResponseWriter }
