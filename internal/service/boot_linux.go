package service

import (
	"time"

	"golang.org/x/sys/unix"
)

// SinceBoot reads a clock that never jumps and goes on while the machine is
// suspended; the monotonic clock of package time stands still then.
func SinceBoot() time.Duration {
	var at unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &at); err != nil {
		return sinceStart()
	}
	return time.Duration(at.Nano())
}
