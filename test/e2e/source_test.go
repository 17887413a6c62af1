package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/test/harness"
)

func feed(items int) []byte {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0"?><rss version="2.0"><channel><title>News</title>`)
	for n := items; n > 0; n-- {
		fmt.Fprintf(&b, `<item><guid isPermaLink="false">item-%d</guid><title>Item %d</title><link>https://example.org/%d</link>
			<pubDate>%s</pubDate></item>`, n, n, n, time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC).Format(time.RFC1123Z))
	}
	b.WriteString(`</channel></rss>`)
	return []byte(b.String())
}

// polls counts how often the feed was asked for.
func polls(h *harness.Harness) int { return len(h.World.Log.Entries(sim.Filter{Platform: "feeds"})) }

// Items of a feed arrive once: neither another poll nor another daemon brings them
// again, and a new one comes.
func TestFeedItemsArriveOnce(t *testing.T) {
	t.Parallel()
	h, _, _ := newsroom(t)
	h.Exec(`insert into autopost.pull_sources (workspace_id, source_id, kind, config_json)
		values ('news', 'wire', 'rss', jsonb_build_object('url', $1::text, 'interval_seconds', 1, 'backfill_items', 2))`, h.WorldURL+"/feeds/wire")
	h.Exec(`insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, source_id) values ('news', 'wire', 'pull_source', 'wire')`)
	// The kill below hits a poll, which the next daemon may repeat when its lease is over.
	h.Exec(`update autopost.settings set value = '2' where key = 'pull_lease_seconds'`)
	h.World.Feeds.Set("wire", "application/rss+xml", feed(4))
	d := h.Serve()
	again := func(what string) {
		seen := polls(h)
		h.Until(what, func() bool { return polls(h) >= seen+2 })
	}
	h.Until("the newest two are sent", func() bool { return len(h.Accepted()) == 4 })
	again("it is polled again")
	require.Zero(t, d.Stop())
	d = h.Serve()
	again("the next daemon polls")
	require.Len(t, h.Accepted(), 4)

	h.World.Feeds.Set("wire", "application/rss+xml", feed(5))
	h.Until("the new item is sent", func() bool { return len(h.Accepted()) == 6 })
	again("it is polled once more")
	d.Kill()
	h.Serve()
	again("the daemon after the crash polls")
	h.Drained("news")
	texts := map[string]int{}
	for place, copies := range h.Copies() {
		title, _, _ := strings.Cut(place.Text, "\n")
		texts[title] += copies
	}
	require.Equal(t, map[string]int{"Item 3": 2, "Item 4": 2, "Item 5": 2}, texts)
}
