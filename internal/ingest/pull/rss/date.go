package rss

import (
	"cmp"
	"time"

	"github.com/mmcdole/gofeed"

	"autopost/internal/ingest/pull/shape"
)

// publishedAt is the item's own time, or nil: none is invented.
func publishedAt(item *gofeed.Item, now time.Time) *time.Time {
	text, parsed := cmp.Or(item.Published, item.Updated), item.PublishedParsed
	if parsed == nil {
		parsed = item.UpdatedParsed
	}
	if parsed == nil || shape.RussianZone(text) {
		parsed = shape.ParseTime(text)
	}
	return shape.Plausible(parsed, now)
}
