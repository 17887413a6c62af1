package worker

import "time"

var started = time.Now()

// sinceStart is the monotonic clock, for systems without another.
func sinceStart() time.Duration { return time.Since(started) }
