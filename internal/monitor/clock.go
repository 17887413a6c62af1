package monitor

import (
	"context"
	"fmt"
	"sync"
	"time"

	"autopost/internal/worker"
)

// observeInterval is the period of clock observations, and so the longest time that a jump stays unnoticed.
const observeInterval = 15 * time.Second

// observeTimeout bounds an observation. The two compared times differ by at most twice this because of the round
// trip, which is less than the 5 s of observe_clock.
const observeTimeout = 2 * time.Second

// observedClock is the time since boot of the last observation; nil if there was none.
type observedClock struct {
	mu   sync.Mutex
	last *time.Duration
}

// observeClock compares the clock of the database with the time since boot. The holders of leases rely on that
// comparison: a lease must not end because the clock jumped.
func (m *Monitor) observeClock(ctx context.Context) error {
	m.clock.mu.Lock()
	defer m.clock.mu.Unlock()
	query, cancel := context.WithTimeout(ctx, observeTimeout)
	defer cancel()
	var elapsed *time.Duration
	if m.clock.last != nil {
		since := worker.SinceBoot() - *m.clock.last
		elapsed = &since
	}
	jumped, err := m.deps.Store.ObserveClock(query, m.cfg.RunID, elapsed)
	if err != nil {
		m.clock.last = nil // the time of the database's observation is unknown
		return fmt.Errorf("observe clock: %w", err)
	}
	now := worker.SinceBoot()
	m.clock.last = &now
	if jumped != 0 {
		m.deps.Log.Error("monitor.clock_jumped", "seconds", jumped.Seconds(),
			"remedy", "the clock of the database's machine was set or drifts: synchronize it by NTP; waits keep their length")
	}
	return nil
}
