package httpfetch

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// LongestHint limits the hints of a source. The database has a lower limit.
const LongestHint = 365 * 24 * time.Hour

// MaxAge returns max-age of Cache-Control, or 0.
func MaxAge(header http.Header) time.Duration {
	for directive := range strings.SplitSeq(header.Get("Cache-Control"), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(directive), "=")
		if !strings.EqualFold(name, "max-age") {
			continue
		}
		if seconds, err := strconv.Atoi(strings.Trim(value, `" `)); err == nil {
			return bounded(seconds)
		}
	}
	return 0
}

// retryAfter returns the pause in Retry-After, which has seconds or a date, or 0.
func retryAfter(header http.Header, now time.Time) time.Duration {
	value := strings.TrimSpace(header.Get("Retry-After"))
	if seconds, err := strconv.Atoi(value); err == nil {
		return bounded(seconds)
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, min(at.Sub(now), LongestHint))
	}
	return 0
}

func bounded(seconds int) time.Duration {
	return time.Duration(max(0, min(seconds, int(LongestHint/time.Second)))) * time.Second
}
