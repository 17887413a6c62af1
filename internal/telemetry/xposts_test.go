package telemetry

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDomainEventsHaveTheMetricsOfTheirFoundingDocument(t *testing.T) {
	t.Parallel()
	w := NewRecorder(nil)
	seconds := 12.0
	w.XPosts(func(context.Context) ([]XPostLine, error) {
		return []XPostLine{
			{EventType: "image", Status: "posted", Events: 2, Seconds: &seconds, Buckets: []int64{0, 1, 2, 2, 2, 2, 2, 2, 2}},
			{EventType: "image", Status: "posted", Backfill: true, Events: 4},
			{EventType: "video", Status: "failed", Reason: "http_400", Events: 1},
			{EventType: "video", Status: "approved", Events: 3}, {EventType: "combat", Status: "pending", Events: 5},
		}, nil
	})
	text := scraped(t, w)
	for _, line := range []string{
		`x_post_events_ingested_total{backfill="false",eventType="video"} 4`, `x_post_events_posted_total{backfill="false",eventType="image"} 2`,
		`x_post_events_posted_total{backfill="true",eventType="image"} 4`, `x_post_events_failed_total{eventType="video",reason="http_400"} 1`,
		`x_post_queue_depth 3`, `x_post_pending_moderation 5`, `x_post_latency_seconds_bucket{le="5"} 1`, `x_post_latency_seconds_count 2`, `x_post_latency_seconds_sum 12`,
	} {
		require.Contains(t, text, line)
	}
}
