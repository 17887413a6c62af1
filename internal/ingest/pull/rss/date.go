package rss

import (
	"cmp"
	"time"

	"github.com/mmcdole/gofeed"

	"autopost/internal/ingest/pull/item"
)

// publishedAt returns the item's time, or nil without a valid one.
func publishedAt(feedItem *gofeed.Item, now time.Time) *time.Time {
	text, parsed := cmp.Or(feedItem.Published, feedItem.Updated), feedItem.PublishedParsed
	if parsed == nil {
		parsed = feedItem.UpdatedParsed
	}
	if parsed == nil || item.RussianZone(text) {
		parsed = item.ParseTime(text)
	}
	return item.Plausible(parsed, now)
}
