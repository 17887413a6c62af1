package service

import "time"

var started = time.Now()

// sinceStart is the monotonic clock, for where there is no other.
func sinceStart() time.Duration { return time.Since(started) }
