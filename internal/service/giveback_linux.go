package service

import (
	"bufio"
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	"golang.org/x/sys/unix"
)

// GiveBack returns to the system what the start of a process took and the rest of its life does not need: freed memory,
// and the pages of its program, of which those that are used come again by themselves. It is what the kernel does when
// memory is short, and as harmless; kernels before 5.4 keep the pages.
func GiveBack() error {
	debug.FreeOSMemory()
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("give memory back: %w", err)
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return fmt.Errorf("give memory back: %w", err)
	}
	defer maps.Close() //nolint:errcheck // it is read only
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		var from, to uintptr
		var rights string
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x %s", &from, &to, &rights); err != nil || strings.Contains(rights, "w") || !strings.HasSuffix(lines.Text(), " "+program) {
			continue
		}
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_PAGEOUT) // advice: it may not be taken
	}
	return nil
}
