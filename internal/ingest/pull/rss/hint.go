package rss

import (
	"strconv"
	"strings"
	"time"

	"github.com/mmcdole/gofeed"
	gofeedrss "github.com/mmcdole/gofeed/rss"

	"autopost/internal/ingest/pull/httpfetch"
)

// periods are the values of the syndication module.
var periods = map[string]time.Duration{
	"hourly": time.Hour, "daily": 24 * time.Hour, "weekly": 7 * 24 * time.Hour, "monthly": 30 * 24 * time.Hour, "yearly": 365 * 24 * time.Hour,
}

// pace returns the time in which the feed will not change: the longest of <ttl> and sy:updatePeriod.
func pace(feed *gofeed.Feed) time.Duration {
	var longest time.Duration
	if original, ok := feed.OriginalFeed().(*gofeedrss.Feed); ok {
		if minutes, err := strconv.Atoi(strings.TrimSpace(original.TTL)); err == nil && minutes > 0 {
			longest = time.Duration(min(minutes, int(httpfetch.LongestHint/time.Minute))) * time.Minute
		}
	}
	module := feed.Extensions["sy"]
	if list := module["updatePeriod"]; len(list) > 0 {
		period := periods[strings.ToLower(strings.TrimSpace(list[0].Value))]
		times := 1
		if often := module["updateFrequency"]; len(often) > 0 {
			if n, err := strconv.Atoi(strings.TrimSpace(often[0].Value)); err == nil && n > 0 {
				times = n
			}
		}
		longest = max(longest, period/time.Duration(times))
	}
	return longest
}
