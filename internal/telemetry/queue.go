package telemetry

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// QueueLine is a row of autopost.queue_metrics: the channels of a rate group with the same state of their gates.
type QueueLine struct {
	WorkspaceID, Platform, RateGroup, Gate string
	Channels, Waiting, Due, InFlight       int64
	OldestDueAt                            *time.Time
}

// QueueReader reads the queue.
type QueueReader func(ctx context.Context) ([]QueueLine, error)

const (
	// queueMaxAge is how long one read of the queue serves all scrapers.
	queueMaxAge = 15 * time.Second
	// queueTimeout bounds one read; after it a scrape has no queue metrics.
	queueTimeout = 5 * time.Second
)

// Queue adds the queue to the metrics. A scrape reads it, at most every fifteen seconds.
func (r *Recorder) Queue(read QueueReader) { r.registry.MustRegister(newQueue(read)) }

type queue struct {
	recent[QueueLine]

	waiting, due, inFlight, oldest, gates, failed *prometheus.Desc
}

func newQueue(read QueueReader) *queue {
	group := []string{"workspace", "platform", "rate_group"}
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return &queue{
		recent:   recent[QueueLine]{read: read},
		waiting:  desc("autopost_queue_deliveries", "Waiting deliveries, including scheduled and held ones; _other sums up all beyond the largest.", group...),
		due:      desc("autopost_queue_due_deliveries", "Due deliveries.", group...),
		inFlight: desc("autopost_queue_in_flight", "Claimed deliveries.", group...),
		oldest:   desc("autopost_queue_oldest_due_seconds", "How long the oldest delivery has been due; 0 if none is.", group...),
		gates:    desc("autopost_queue_channels", "Channels with waiting deliveries, by the state of their gate; ready ones are claimed next.", "platform", "gate"),
		failed:   desc("autopost_queue_unreadable", "1 while the queue cannot be read."),
	}
}

// Describe implements prometheus.Collector.
func (q *queue) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{q.waiting, q.due, q.inFlight, q.oldest, q.gates, q.failed} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (q *queue) Collect(to chan<- prometheus.Metric) {
	lines, asked, err := q.get()
	if err != nil {
		to <- prometheus.MustNewConstMetric(q.failed, prometheus.GaugeValue, 1)
		return
	}
	to <- prometheus.MustNewConstMetric(q.failed, prometheus.GaugeValue, 0)
	type group struct{ workspace, platform, rateGroup string }
	type gate struct{ platform, gate string }
	sums, gates := map[group]*QueueLine{}, map[gate]int64{}
	for _, l := range lines {
		g := group{l.WorkspaceID, l.Platform, l.RateGroup}
		if sums[g] == nil {
			sums[g] = &QueueLine{}
		}
		sums[g].add(l)
		gates[gate{l.Platform, l.Gate}] += l.Channels
	}
	for g, sum := range sums {
		send := func(d *prometheus.Desc, value float64) {
			to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, g.workspace, g.platform, g.rateGroup)
		}
		send(q.waiting, float64(sum.Waiting))
		send(q.due, float64(sum.Due))
		send(q.inFlight, float64(sum.InFlight))
		send(q.oldest, sum.age(asked).Seconds())
	}
	for k, n := range gates {
		to <- prometheus.MustNewConstMetric(q.gates, prometheus.GaugeValue, float64(n), k.platform, k.gate)
	}
}

func (l *QueueLine) add(o QueueLine) {
	l.Waiting += o.Waiting
	l.Due += o.Due
	l.InFlight += o.InFlight
	if o.OldestDueAt != nil && (l.OldestDueAt == nil || o.OldestDueAt.Before(*l.OldestDueAt)) {
		l.OldestDueAt = o.OldestDueAt
	}
}

func (l *QueueLine) age(now time.Time) time.Duration {
	if l.OldestDueAt == nil {
		return 0
	}
	return max(0, now.Sub(*l.OldestDueAt))
}

// Pool counts the connections to the database; Most is their limit.
type Pool struct{ InUse, Idle, Most int32 }

// Connections adds the state of the pool to the metrics.
func (r *Recorder) Connections(pool func() Pool) {
	gauge := func(state string, value func(Pool) int32) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "autopost_database_connections", Help: "Connections of the pool, by state; most is the limit.", ConstLabels: prometheus.Labels{"state": state},
		}, func() float64 { return float64(value(pool())) })
	}
	r.registry.MustRegister(
		gauge("in_use", func(p Pool) int32 { return p.InUse }), gauge("idle", func(p Pool) int32 { return p.Idle }), gauge("most", func(p Pool) int32 { return p.Most }))
}
