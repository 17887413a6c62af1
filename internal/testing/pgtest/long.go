package pgtest

import (
	"os"
	"time"
)

// Long reports whether the proofs run at full size (make test-long) instead of a sample. AUTOPOST_LONG
// is 1, or the duration of each randomized proof, such as "30m".
func Long() bool { return os.Getenv("AUTOPOST_LONG") != "" }

// Until returns the time at which a randomized proof stops: after its sample, or after AUTOPOST_LONG;
// after a day if that is 1.
func Until(sample time.Duration) time.Time {
	switch long := os.Getenv("AUTOPOST_LONG"); long {
	case "":
		return time.Now().Add(sample)
	case "1":
		return time.Now().Add(24 * time.Hour)
	default:
		full, err := time.ParseDuration(long)
		if err != nil {
			panic("AUTOPOST_LONG is neither 1 nor a duration: " + long)
		}
		return time.Now().Add(full)
	}
}
