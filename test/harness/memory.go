package harness

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// Memory measures the private memory of a process, without mapped files.
type Memory struct {
	stop, stopped chan struct{}
	most          int64
}

// WatchMemory measures a process until End.
func WatchMemory(pid int) *Memory {
	m := &Memory{stop: make(chan struct{}), stopped: make(chan struct{})}
	go func() {
		defer close(m.stopped)
		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()
		for {
			m.most = max(m.most, Anonymous(pid))
			select {
			case <-ticker.C:
			case <-m.stop:
				return
			}
		}
	}()
	return m
}

// End returns the most that was seen, in bytes.
func (m *Memory) End() int64 {
	close(m.stop)
	<-m.stopped
	return m.most
}

// Anonymous returns the private memory of a process, in bytes; 0 if the kernel does not show it.
func Anonymous(pid int) int64 {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(status), "RssAnon:")
	line, _, _ := strings.Cut(rest, "kB")
	kb, _ := strconv.ParseInt(strings.TrimSpace(line), 10, 64) // none is left of a process that has ended
	return kb << 10
}
