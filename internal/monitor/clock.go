package monitor

import (
	"context"
	"sync"
	"time"

	"autopost/internal/service"
)

// observeEvery is the time between two looks at the database's clock, and the longest for which a jump of it
// can go unnoticed.
const observeEvery = 15 * time.Second

// observeTimeout bounds an observation, and with it by how much the two times that are
// compared can differ because of the way between them: twice this, less than clock_jump_ms.
const observeTimeout = 2 * time.Second

// Clock compares the database's clock with one that does not jump.
type Clock interface {
	// ObserveClock tells how much time has gone by for the observer since its last observation was answered; nil
	// at the first. It returns by how much the database's clock has jumped meanwhile, 0 being the normal answer.
	ObserveClock(ctx context.Context, observer string, elapsed *time.Duration) (jumped time.Duration, err error)
}

// witness remembers when the clock was last observed, by the time since boot.
type witness struct {
	mu   sync.Mutex
	last *time.Duration
}

// watchClock observes the database's clock; leases that are ended by it are alive as
// far as their holders know.
func (m *Monitor) watchClock(ctx context.Context) bool {
	m.witness.mu.Lock()
	defer m.witness.mu.Unlock()
	query, cancel := context.WithTimeout(ctx, observeTimeout)
	defer cancel()
	var elapsed *time.Duration
	if m.witness.last != nil {
		since := service.SinceBoot() - *m.witness.last
		elapsed = &since
	}
	jumped, err := m.deps.Clock.ObserveClock(query, m.cfg.RunID, elapsed)
	if err != nil {
		m.witness.last = nil // when the database looked at its clock is not known
		m.fail(ctx, "observe clock", err)
		return false
	}
	now := service.SinceBoot()
	m.witness.last = &now
	if jumped != 0 {
		m.deps.Log.Error("monitor.clock_jumped", "seconds", jumped.Seconds(),
			"remedy", "the clock of the database's machine was set or has run away: have it kept by NTP; what waited waits as long as it was to")
	}
	return true
}
