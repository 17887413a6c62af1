package worker

import (
	"time"

	"golang.org/x/sys/unix"
)

// SinceBoot reads a clock that never jumps and runs while the machine is suspended. The monotonic clock of package time
// stops then.
func SinceBoot() time.Duration {
	var at unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &at); err != nil {
		return sinceStart()
	}
	return time.Duration(at.Nano())
}
