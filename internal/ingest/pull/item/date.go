package item

import (
	"strconv"
	"strings"
	"time"
)

// zones are the offsets of Russian zone names, which Go reads as UTC.
var zones = map[string]string{
	"MSK": "+0300", "MSD": "+0400", "SAMT": "+0400", "YEKT": "+0500", "OMST": "+0600", "NOVT": "+0700",
	"KRAT": "+0700", "IRKT": "+0800", "YAKT": "+0900", "VLAT": "+1000", "MAGT": "+1100", "PETT": "+1200",
	"МСК": "+0300",
}

// months are English month names by the first three letters of the Russian name.
var months = map[string]string{
	"янв": "Jan", "фев": "Feb", "мар": "Mar", "апр": "Apr", "мая": "May", "май": "May", "июн": "Jun",
	"июл": "Jul", "авг": "Aug", "сен": "Sep", "окт": "Oct", "ноя": "Nov", "дек": "Dec",
}

var layouts = []string{
	time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04:05-0700", "2006-01-02T15:04:05 -0700",
	"2006-01-02 15:04:05 -0700", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05-07", "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02",
	time.RFC1123Z, time.RFC1123, "Mon, 2 Jan 2006 15:04:05 -0700", "Mon, 2 Jan 2006 15:04 -0700", "Mon, 2 Jan 06 15:04:05 -0700",
	"2 Jan 2006 15:04:05 -0700", "2 Jan 2006 15:04 -0700", "2 Jan 2006 15:04:05", "2 Jan 2006 15:04", "2 Jan 2006",
	"02.01.2006 15:04:05 -0700", "02.01.2006 15:04 -0700", "02.01.2006 15:04:05", "02.01.2006 15:04", "02.01.2006",
}

// tolerance is how far the clock of a source may be ahead.
const tolerance = 24 * time.Hour

// RussianZone reports whether a date ends in the name of a Russian zone, which other parsers misread.
func RussianZone(text string) bool {
	words := dateWords(text)
	return len(words) > 0 && zones[strings.ToUpper(words[len(words)-1])] != ""
}

func dateWords(text string) []string {
	return strings.Fields(strings.NewReplacer(" г.", " ", ",", ", ").Replace(text))
}

// ParseTime reads a date in English or Russian words, in digits, or as seconds or milliseconds since 1970. It returns
// nil if text is not a date. A date without a zone is in UTC.
func ParseTime(text string) *time.Time {
	words := dateWords(text)
	if len(words) == 0 {
		return nil
	}
	if offset, ok := zones[strings.ToUpper(words[len(words)-1])]; ok {
		words[len(words)-1] = offset
	}
	for i, word := range words {
		letters := []rune(strings.ToLower(word))
		if name, ok := months[string(letters[:min(3, len(letters))])]; ok {
			words[i] = name
			if i == 2 {
				words = words[1:] // a weekday in English or Russian
			}
			break
		}
	}
	joined := strings.Join(words, " ")
	for _, layout := range layouts {
		if t, err := time.Parse(layout, joined); err == nil {
			return &t
		}
	}
	return unixTime(joined)
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

// Plausible returns t in UTC. It returns nil if t cannot be a time of publication: before 1970, or more than a day
// ahead.
func Plausible(t *time.Time, now time.Time) *time.Time {
	if t == nil || t.Year() < 1970 || t.After(now.Add(tolerance)) {
		return nil
	}
	utc := t.UTC()
	return &utc
}
