//go:build !linux

package worker

import "time"

// SinceBoot is the monotonic clock on this system: it does not count the time while the machine is suspended.
func SinceBoot() time.Duration { return sinceStart() }
