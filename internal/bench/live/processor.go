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

// clockTick is the unit of times in /proc, the same on every Linux that Go runs on.
const clockTick = 10 * time.Millisecond

// Times are what a process has taken of the processors so far.
type Times struct {
	// Own is its time; Ended is that of the children it has waited for.
	Own, Ended time.Duration
	// Parent is the process that started it.
	Parent int
}

// TimesOf asks the kernel about a process. Linux alone tells.
func TimesOf(pid int) (Times, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Times{}, err
	}
	// The name may hold spaces; the fields are counted behind it: state, ppid, …, utime is the 12th, stime, cutime, cstime.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 15 {
		return Times{}, fmt.Errorf("/proc/%d/stat tells less than expected", pid)
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

// Family is what a process and its children have taken, those that live and those that have ended.
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
