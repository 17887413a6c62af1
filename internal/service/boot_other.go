//go:build !linux

package service

import "time"

// SinceBoot is the monotonic clock here: a machine that was suspended does not notice.
func SinceBoot() time.Duration { return sinceStart() }
