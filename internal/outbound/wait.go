package outbound

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// longestWait is the longest wait that is accepted.
const longestWait = 365 * 24 * time.Hour

// RetryAfter returns the wait of the Retry-After header, at most a year; 0 without one. A date counts
// from the answer's own Date, because clocks differ.
func RetryAfter(header http.Header) time.Duration {
	text := strings.TrimSpace(header.Get("Retry-After"))
	if seconds, err := strconv.ParseInt(text, 10, 64); err == nil {
		return time.Duration(max(0, min(seconds, int64(longestWait/time.Second)))) * time.Second
	}
	until, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		return 0
	}
	return max(0, min(until.Sub(now), longestWait))
}
