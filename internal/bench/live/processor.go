package live

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of the times in /proc on all Linux systems that Go supports.
const clockTick = 10 * time.Millisecond

// Times is the processor time of a process so far.
type Times struct {
	// Own is its own time.
	Own time.Duration
	// Ended is the time of ended children.
	Ended time.Duration
	// Parent is the id of the parent process.
	Parent int
}

// TimesOf reads /proc. It works only on Linux.
func TimesOf(pid int) (Times, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Times{}, err
	}
	// The name may contain spaces. The fields after it are state, ppid, …, utime (the 12th), stime, cutime, cstime.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 15 {
		return Times{}, fmt.Errorf("/proc/%d/stat must have 15 fields after the name", pid)
	}
	var numbers [5]int64
	for i, text := range append(fields[11:15:15], fields[1]) {
		if numbers[i], err = strconv.ParseInt(text, 10, 64); err != nil {
			return Times{}, err
		}
	}
	return Times{
		Own: time.Duration(numbers[0]+numbers[1]) * clockTick, Ended: time.Duration(numbers[2]+numbers[3]) * clockTick,
		Parent: int(numbers[4]),
	}, nil
}

// Family returns the processor time of a process and of its children, running and ended.
func Family(pid int) (time.Duration, error) {
	root, err := TimesOf(pid)
	if err != nil {
		return 0, err
	}
	sum := root.Own + root.Ended
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0, err
	}
	for _, folder := range all {
		child, err := strconv.Atoi(filepath.Base(folder))
		if err != nil {
			continue
		}
		if times, err := TimesOf(child); err == nil && times.Parent == pid { // it may have ended meanwhile
			sum += times.Own + times.Ended
		}
	}
	return sum, nil
}

// Running returns how long a process has run on a processor, in nanoseconds, unlike the
// clock ticks of TimesOf. It works only on Linux. A server must run on this machine.
func Running(pid int) (time.Duration, error) {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
	if err != nil {
		return 0, fmt.Errorf("processor time of a backend: %w", err)
	}
	ran, _, _ := strings.Cut(string(line), " ")
	nanoseconds, err := strconv.ParseInt(ran, 10, 64)
	return time.Duration(nanoseconds), err
}
