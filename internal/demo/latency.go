package demo

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"autopost/internal/sim/telegram"
)

// demoSamples is the number of measured posts.
const demoSamples = 40

// latency posts one post after the other. It measures the time to the first byte at the
// platform, from the start of the webhook request and from its answer.
func (d *demo) latency(ctx context.Context) (string, error) {
	alerts, err := d.channel(ctx, "tg-alerts")
	if err != nil {
		return "", err
	}
	// The channel has no limit. The limit of the platform would dominate the result.
	d.sims.Telegram.SetLimits(telegram.Limits{})
	defer d.sims.Telegram.SetLimits(telegram.DefaultLimits())
	var fromRequest, fromAnswer []time.Duration
	for n := range demoSamples {
		post := only(fmt.Sprintf("latency-%s-%d", d.run, n), fmt.Sprintf("Тревога № %d/%s", n, d.run), alerts.ChannelID)
		post.Tags = []string{"alert"}
		answer, err := d.push(ctx, post)
		if err != nil {
			return "", err
		}
		if _, err := d.awaitMessage(ctx, answer.MessageID, alerts.ChannelID); err != nil {
			return "", err
		}
		arrived := d.received(alerts, answer.sentAt)
		if len(arrived) != 1 {
			return "", fmt.Errorf("alert %d arrived %d times", n, len(arrived))
		}
		fromRequest = append(fromRequest, arrived[0].Start.Sub(answer.sentAt))
		fromAnswer = append(fromAnswer, arrived[0].Start.Sub(answer.answeredAt))
	}
	d.report.figure("idle: webhook request to first byte at the platform", "%s (%d posts)", quantiles(fromRequest), demoSamples)
	d.report.figure("idle: webhook answer to first byte at the platform", "%s", quantiles(fromAnswer))
	return fmt.Sprintf("request to first byte at the platform %s, over %d posts", quantiles(fromRequest), demoSamples), nil
}

// quantiles formats the median and the 99th percentile.
func quantiles(samples []time.Duration) string {
	slices.Sort(samples)
	return fmt.Sprintf("p50 %.1f ms, p99 %.1f ms", milliseconds(quantile(samples, 0.5)), milliseconds(quantile(samples, 0.99)))
}

// quantile returns the nearest rank of sorted samples.
func quantile(sorted []time.Duration, q float64) time.Duration {
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
