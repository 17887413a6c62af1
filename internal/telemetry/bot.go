package telemetry

import (
	"context"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// BotLine is a row of autopost.bot_metrics: messages to the bots of a workspace.
type BotLine struct {
	WorkspaceID string
	// Line is the answer of processed messages, or one of unprocessed.
	Line     string
	Messages int64
}

// BotReader reads the messages to bots.
type BotReader func(ctx context.Context) ([]BotLine, error)

// unprocessed are the lines of messages without an answer.
var unprocessed = []string{"waiting", "failing", "given_up"}

// Bots adds the messages to bots to the metrics. A scrape reads them, at most every fifteen seconds.
func (r *Recorder) Bots(read BotReader) { r.registry.MustRegister(newBots(read)) }

type bots struct {
	recent[BotLine]

	messages, unprocessed *prometheus.Desc
}

func newBots(read BotReader) *bots {
	return &bots{
		recent: recent[BotLine]{read: read},
		messages: prometheus.NewDesc("autopost_bot_messages", "Messages to the bot in the last ten minutes, by answer: matched, unmatched (no rule), guarded, escalated, relayed.",
			[]string{"workspace", "answer"}, nil),
		unprocessed: prometheus.NewDesc("autopost_bot_unprocessed", "Messages to the bot that are not processed, by state: waiting, failing, given_up.", []string{"workspace", "state"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (b *bots) Describe(to chan<- *prometheus.Desc) { to <- b.messages; to <- b.unprocessed }

// Collect implements prometheus.Collector. Without the database there are no such metrics.
func (b *bots) Collect(to chan<- prometheus.Metric) {
	lines, _, err := b.get()
	if err != nil {
		return
	}
	for _, l := range lines {
		desc := b.messages
		if slices.Contains(unprocessed, l.Line) {
			desc = b.unprocessed
		}
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(l.Messages), l.WorkspaceID, l.Line)
	}
}
