package monitor

import (
	"context"

	"autopost/internal/crash"
)

// Leases ends the leases whose holder is gone. Both return how many deliveries
// they moved, zero being the normal answer.
type Leases interface {
	RecoverSendingLeases(ctx context.Context, workspace string) (int, error)
	RecoverClaimedLeases(ctx context.Context, workspace string) (int, error)
}

func (m *Monitor) recoverLeases(ctx context.Context) bool {
	if !m.watchClock(ctx) { // a lease is over by a clock that was just seen to go right
		return false
	}
	crash.During(crash.InsideRecovery)
	sending, ok1 := m.sweep(ctx, "recover sending leases", m.deps.Leases.RecoverSendingLeases)
	claimed, ok2 := m.sweep(ctx, "recover claimed leases", m.deps.Leases.RecoverClaimedLeases)
	m.done(sending+claimed > 0, "monitor.leases_recovered", "sending", sending, "claimed", claimed)
	return ok1 && ok2
}
