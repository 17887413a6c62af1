package telemetry

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the instruments. Each label has few values: answers, platforms, functions of ours.
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
	inFlight       prometheus.Gauge
	recovered      *prometheus.CounterVec
	panics         *prometheus.CounterVec
	notices        *prometheus.CounterVec
	database       *prometheus.HistogramVec
	databaseErrors *prometheus.CounterVec
	refusals       *prometheus.CounterVec
	replies        *prometheus.CounterVec
	replySeconds   *prometheus.HistogramVec
}

var (
	// quick has buckets for milliseconds, slow for waits of operators; both are in seconds.
	quick = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10}
	slow  = []float64{.025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 21600}
	many  = []float64{0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000}
)

func newMetrics() metrics {
	return metrics{
		requests:       counter("autopost_http_requests_total", "HTTP requests, by part of the daemon (push, api, other) and status.", "area", "code"),
		requestSeconds: histogram("autopost_http_request_seconds", "Time to answer an HTTP request.", quick, "area"),
		posts:          counter("autopost_posts_total", "Pushed posts, by answer: enqueued, accepted, duplicate, rejected.", "answer"),
		deliveries:     counter("autopost_deliveries_total", "Results of pushed posts per channel: enqueued, deduped, invalid, skipped.", "verdict"),
		submissions:    counter("autopost_submissions_total", "Attempts to fetch the media of a post, by the resulting status.", "status"),
		polls:          counter("autopost_polls_total", "Polls of sources, by kind and outcome: items, nothing, failed.", "kind", "outcome"),
		batch:          histogram("autopost_batch_size", "Items that one call of a function passed or returned.", many, "function"),
		starts:         counter("autopost_starts_total", "Start requests of calls: applied, or the reason of the refusal (stale, rate, paused, …).", "answer"),
		attempts: counter("autopost_attempts_total", "Attempts, by platform, resulting status (uncommitted or stale if there is none) and class of failure.",
			"platform", "outcome", "failure"),
		callSeconds: histogram("autopost_call_seconds", "Duration of one attempt in the adapter.", slow, "platform"),
		firstByte: histogram("autopost_accept_to_first_byte_seconds",
			"Time from the acceptance of a post (or its scheduled time, if later) to its first call.", slow, "platform"),
		acceptance: histogram("autopost_accept_to_acceptance_seconds",
			"Time from the acceptance of a post (or its scheduled time, if later) to the acceptance by the platform.", slow, "platform"),
		slotLate: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "autopost_slot_late_seconds", Help: "Delay of a limited call after its slot.", Buckets: quick}),
		inFlight:       prometheus.NewGauge(prometheus.GaugeOpts{Name: "autopost_senders_in_use", Help: "Deliveries in flight in this daemon."}),
		recovered:      counter("autopost_leases_recovered_total", "Deliveries whose lease was ended because its holder was dead, by lease: sending, claimed.", "lease"),
		panics:         counter("autopost_stage_panics_total", "Panics in a stage of the daemon; each lost at most one piece of work.", "stage"),
		notices:        counter("autopost_notices_total", "Messages to alert targets, by result: sent, failed.", "result"),
		database:       histogram("autopost_database_seconds", "Duration of one call of a database function.", quick, "function"),
		databaseErrors: counter("autopost_database_errors_total", "Calls of a database function that failed.", "function"),
		refusals:       counter("autopost_disk_refusals_total", "Writes that failed because a disk was full, by disk: database, media.", "disk"),
		replies: counter("autopost_bot_replies_total", "Attempts for messages of the bot, by platform, resulting status (uncommitted or stale if there is none) and class of failure.",
			"platform", "outcome", "failure"),
		replySeconds: histogram("autopost_bot_reply_seconds", "Time from the receipt of a customer's message to the acceptance of the answer by the platform.", slow, "platform"),
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
		m.acceptance, m.slotLate, m.inFlight, m.recovered, m.notices, m.panics, m.database, m.databaseErrors, m.refusals, m.replies, m.replySeconds,
	}
}

// Served counts the requests of a handler. area returns the label of a path, one of a few words.
func (r *Recorder) Served(area func(path string) string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		began := time.Now()
		answer := &statusWriter{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(answer, request.WithContext(withBegan(request.Context(), began)))
		label := area(request.URL.Path)
		r.metrics.requests.WithLabelValues(label, strconv.Itoa(answer.status)).Inc()
		r.metrics.requestSeconds.WithLabelValues(label).Observe(time.Since(began).Seconds())
	})
}

// statusWriter remembers the status of the answer.
type statusWriter struct {
	http.ResponseWriter

	status int
}

// WriteHeader implements http.ResponseWriter.
func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap gives http.ResponseController access to the wrapped writer.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
