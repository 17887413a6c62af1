package rss

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/mmcdole/gofeed"
)

// zones are Russian zone names that the feed parser reads as UTC.
var zones = map[string]string{
	"MSK": "+0300", "MSD": "+0400", "SAMT": "+0400", "YEKT": "+0500", "OMST": "+0600", "NOVT": "+0700",
	"KRAT": "+0700", "IRKT": "+0800", "YAKT": "+0900", "VLAT": "+1000", "MAGT": "+1100", "PETT": "+1200",
	"МСК": "+0300",
}

// months by the first three letters of their Russian names.
var months = map[string]string{
	"янв": "Jan", "фев": "Feb", "мар": "Mar", "апр": "Apr", "мая": "May", "май": "May", "июн": "Jun",
	"июл": "Jul", "авг": "Aug", "сен": "Sep", "окт": "Oct", "ноя": "Nov", "дек": "Dec",
}

// layouts are those that the feed parser does not read, or reads without their zone.
var layouts = []string{
	"Mon, 2 Jan 2006 15:04:05 -0700", "Mon, 2 Jan 2006 15:04 -0700", "2 Jan 2006 15:04:05 -0700", "2 Jan 2006 15:04 -0700",
	"Mon, 2 Jan 06 15:04:05 -0700", "2006-01-02 15:04:05 -0700", "2006-01-02T15:04:05 -0700",
	"2 Jan 2006 15:04:05", "2 Jan 2006 15:04", "2 Jan 2006", "02.01.2006 15:04:05 -0700", "02.01.2006 15:04 -0700",
	"02.01.2006 15:04:05", "02.01.2006 15:04", "02.01.2006",
}

// tolerance is how far ahead of us a feed's clock may be.
const tolerance = 24 * time.Hour

// publishedAt is the item's own time, or nil: none is invented, and one that
// cannot be (before 1970, more than a day ahead) is none.
func publishedAt(item *gofeed.Item, now time.Time) *time.Time {
	parsed := item.PublishedParsed
	if parsed == nil {
		parsed = item.UpdatedParsed
	}
	fields := strings.Fields(strings.NewReplacer(" г.", " ", ",", ", ").Replace(cmp.Or(item.Published, item.Updated)))
	if len(fields) > 0 {
		offset, zoned := zones[strings.ToUpper(fields[len(fields)-1])]
		if zoned {
			fields[len(fields)-1] = offset
		}
		if zoned || parsed == nil {
			parsed = parseDate(fields)
		}
	}
	if parsed == nil || parsed.Year() < 1970 || parsed.After(now.Add(tolerance)) {
		return nil
	}
	utc := parsed.UTC()
	return &utc
}

// parseDate reads the words of a date in forms that the feed parser does not know.
func parseDate(fields []string) *time.Time {
	if len(fields) == 1 {
		return unixTime(fields[0])
	}
	for i, field := range fields {
		letters := []rune(strings.ToLower(field))
		if name, ok := months[string(letters[:min(3, len(letters))])]; ok {
			fields[i] = name
			if i == 2 {
				fields = fields[1:] // a weekday, in Russian too
			}
			break
		}
	}
	for _, layout := range layouts {
		if t, err := time.Parse(layout, strings.Join(fields, " ")); err == nil {
			return &t
		}
	}
	return nil
}

// unixTime reads seconds or milliseconds since 1970.
func unixTime(text string) *time.Time {
	n, err := strconv.ParseInt(text, 10, 64)
	var t time.Time
	switch {
	case err != nil:
		return nil
	case len(text) == 10:
		t = time.Unix(n, 0)
	case len(text) == 13:
		t = time.UnixMilli(n)
	default:
		return nil
	}
	return &t
}
