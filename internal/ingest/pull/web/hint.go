package web

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// LongestHint bounds what is believed of a hint; the database has a stricter bound of its own.
const LongestHint = 365 * 24 * time.Hour

// MaxAge is what Cache-Control says, or 0.
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

// retryAfter is what a server asks for, in seconds or as a date, or 0.
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
