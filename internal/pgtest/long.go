package pgtest

import (
	"os"
	"time"
)

// Long tells whether the proofs should run at their full size (make test-long) and
// not as the sample that go test shows: AUTOPOST_LONG is 1, or how long each of
// those that choose their cases by chance may take, as "30m".
func Long() bool { return os.Getenv("AUTOPOST_LONG") != "" }

// Until is when a proof that could go on stops: after its sample, or as AUTOPOST_LONG
// says; a day for 1, which is to say when it is through.
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
