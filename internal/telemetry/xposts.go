package telemetry

import (
	"context"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// XPostLine is a row of autopost.x_post_metrics: the kept domain events of a type with a status.
type XPostLine struct {
	EventType, Status, Reason string
	// Backfill: they were posted before autopost recorded them.
	Backfill bool
	Events   int64
	// Seconds is the sum of the times from receipt to post; nil if none was posted.
	Seconds *float64
	// Buckets counts the posted events by xPostBounds, each including the smaller ones.
	Buckets []int64
}

// XPostReader reads the domain events.
type XPostReader func(ctx context.Context) ([]XPostLine, error)

// xPostBounds are the upper bounds of the buckets, in seconds. x_post_metrics has the same.
var xPostBounds = []float64{1, 5, 15, 60, 300, 900, 3600, 21600, 86400}

// XPosts adds the domain events to the metrics, with the names of the founding document. A scrape reads them, at most
// every fifteen seconds.
func (r *Recorder) XPosts(read XPostReader) { r.registry.MustRegister(newXPosts(read)) }

type xPosts struct {
	recent[XPostLine]

	ingested, posted, failed, depth, pending, latency *prometheus.Desc
}

func newXPosts(read XPostReader) *xPosts {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return &xPosts{
		recent:   recent[XPostLine]{read: read},
		ingested: desc("x_post_events_ingested_total", "Kept domain events, by type; backfill: recorded afterwards.", "eventType", "backfill"),
		posted:   desc("x_post_events_posted_total", "Posted domain events, by type.", "eventType", "backfill"),
		failed:   desc("x_post_events_failed_total", "Failed domain events, by type and code of the failure.", "eventType", "reason"),
		depth:    desc("x_post_queue_depth", "Approved domain events that are not posted yet."),
		pending:  desc("x_post_pending_moderation", "Domain events that wait for a decision."),
		latency:  desc("x_post_latency_seconds", "Time from the receipt of a domain event to its post."),
	}
}

// Describe implements prometheus.Collector.
func (x *xPosts) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{x.ingested, x.posted, x.failed, x.depth, x.pending, x.latency} {
		to <- d
	}
}

// Collect implements prometheus.Collector. Without the database there are no such metrics; autopost_queue_unreadable
// shows it.
func (x *xPosts) Collect(to chan<- prometheus.Metric) {
	lines, _, err := x.get()
	if err != nil {
		return
	}
	type key struct {
		eventType string
		backfill  bool
	}
	ingested, posted := map[key]int64{}, map[key]int64{}
	var depth, pending int64
	var count uint64
	var sum float64
	buckets := map[float64]uint64{}
	for _, l := range lines {
		k := key{l.EventType, l.Backfill}
		ingested[k] += l.Events
		switch l.Status {
		case "posted":
			posted[k] += l.Events
			if l.Seconds != nil {
				count, sum = count+uint64(max(0, l.Events)), sum+*l.Seconds
				for i, bound := range xPostBounds[:min(len(xPostBounds), len(l.Buckets))] {
					buckets[bound] += uint64(max(0, l.Buckets[i]))
				}
			}
		case "failed":
			to <- prometheus.MustNewConstMetric(x.failed, prometheus.CounterValue, float64(l.Events), l.EventType, l.Reason)
		case "approved":
			depth += l.Events
		case "pending":
			pending += l.Events
		}
	}
	for k, n := range ingested {
		to <- prometheus.MustNewConstMetric(x.ingested, prometheus.CounterValue, float64(n), k.eventType, strconv.FormatBool(k.backfill))
	}
	for k, n := range posted {
		to <- prometheus.MustNewConstMetric(x.posted, prometheus.CounterValue, float64(n), k.eventType, strconv.FormatBool(k.backfill))
	}
	to <- prometheus.MustNewConstMetric(x.depth, prometheus.GaugeValue, float64(depth))
	to <- prometheus.MustNewConstMetric(x.pending, prometheus.GaugeValue, float64(pending))
	to <- prometheus.MustNewConstHistogram(x.latency, count, sum, buckets)
}
