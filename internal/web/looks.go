package web

import (
	"sync"
	"time"
)

// looks remembers when the chats of bots were looked for, so that many open pages ask a platform no more than one.
type looks struct {
	mu   sync.Mutex
	last map[string]time.Time
}

// tooSoon reports whether the last look for a bot was less than discoverPause ago. If not, this is the last one.
func (l *looks) tooSoon(bot string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.last[bot]) < discoverPause {
		return true
	}
	for name, at := range l.last {
		if now.Sub(at) >= discoverPause {
			delete(l.last, name)
		}
	}
	if l.last == nil {
		l.last = map[string]time.Time{}
	}
	l.last[bot] = now
	return false
}
