package telemetry

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// QueueLine is a line of autopost.queue_metrics: channels of a rate group that the same gate keeps.
type QueueLine struct {
	WorkspaceID, Platform, RateGroup, Gate string
	Channels, Waiting, Due, InFlight       int64
	OldestDueAt                            *time.Time
}

// QueueReader looks at the queue.
type QueueReader func(ctx context.Context) ([]QueueLine, error)

const (
	// queueFresh is how long one look at the queue serves every scraper.
	queueFresh = 15 * time.Second
	// queuePatience is how long a look may take before a scrape does without.
	queuePatience = 5 * time.Second
)

// Queue adds what waits to the metrics. It is looked at when somebody asks, and at
// most every fifteen seconds.
func (w *Watch) Queue(read QueueReader) { w.registry.MustRegister(newQueue(read)) }

type queue struct {
	read QueueReader

	mu    sync.Mutex
	asked time.Time
	lines []QueueLine
	err   error

	waiting, due, inFlight, oldest, gates, failed *prometheus.Desc
}

func newQueue(read QueueReader) *queue {
	group := []string{"workspace", "platform", "rate_group"}
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return &queue{
		read:     read,
		waiting:  desc("autopost_queue_deliveries", "Deliveries that wait, scheduled and held ones too; _other is all beyond the largest.", group...),
		due:      desc("autopost_queue_due_deliveries", "Deliveries whose time has come.", group...),
		inFlight: desc("autopost_queue_in_flight", "Deliveries that some daemon has claimed.", group...),
		oldest:   desc("autopost_queue_oldest_due_seconds", "Since when the oldest delivery is due; 0 when none is.", group...),
		gates:    desc("autopost_queue_channels", "Channels with a queue, by the gate that keeps them; ready goes with the next claim.", "platform", "gate"),
		failed:   desc("autopost_queue_unreadable", "1 while the queue cannot be looked at."),
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
	lines, asked, err := q.look()
	if err != nil {
		to <- prometheus.MustNewConstMetric(q.failed, prometheus.GaugeValue, 1)
		return
	}
	to <- prometheus.MustNewConstMetric(q.failed, prometheus.GaugeValue, 0)
	type group struct{ workspace, platform, rateGroup string }
	type kept struct{ platform, gate string }
	sums, gates := map[group]*QueueLine{}, map[kept]int64{}
	for _, l := range lines {
		g := group{l.WorkspaceID, l.Platform, l.RateGroup}
		if sums[g] == nil {
			sums[g] = &QueueLine{}
		}
		sums[g].add(l)
		gates[kept{l.Platform, l.Gate}] += l.Channels
	}
	for g, sum := range sums {
		tell := func(d *prometheus.Desc, value float64) {
			to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, g.workspace, g.platform, g.rateGroup)
		}
		tell(q.waiting, float64(sum.Waiting))
		tell(q.due, float64(sum.Due))
		tell(q.inFlight, float64(sum.InFlight))
		tell(q.oldest, sum.age(asked).Seconds())
	}
	for k, n := range gates {
		to <- prometheus.MustNewConstMetric(q.gates, prometheus.GaugeValue, float64(n), k.platform, k.gate)
	}
}

// look asks again when the last answer is not fresh any more. Scrapers wait for each other.
func (q *queue) look() ([]QueueLine, time.Time, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.read == nil || !q.asked.IsZero() && time.Since(q.asked) < queueFresh {
		return q.lines, q.asked, q.err
	}
	ctx, cancel := context.WithTimeout(context.Background(), queuePatience)
	defer cancel()
	q.lines, q.err = q.read(ctx)
	q.asked = time.Now()
	return q.lines, q.asked, q.err
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

// Pool is how many connections to the database there are, and how many there may be.
type Pool struct{ InUse, Idle, Most int32 }

// Connections adds the state of the pool to the metrics.
func (w *Watch) Connections(pool func() Pool) {
	gauge := func(state string, value func(Pool) int32) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "autopost_database_connections", Help: "Connections of the pool, by state; most is its bound.", ConstLabels: prometheus.Labels{"state": state},
		}, func() float64 { return float64(value(pool())) })
	}
	w.registry.MustRegister(
		gauge("in_use", func(p Pool) int32 { return p.InUse }), gauge("idle", func(p Pool) int32 { return p.Idle }), gauge("most", func(p Pool) int32 { return p.Most }))
}
