package monitor

import (
	"context"
	"errors"

	"autopost/internal/failpoint"
)

// recoverLeases first observes the clock: a lease ends only by a clock that was just compared.
func (m *Monitor) recoverLeases(ctx context.Context) error {
	if err := m.observeClock(ctx); err != nil {
		return err
	}
	failpoint.Within(failpoint.InsideRecovery)
	sending, err := m.sweep(ctx, "recover sending leases", m.deps.Store.RecoverSendingLeases)
	m.deps.Recorder.Recovered("sending", sending)
	claimed, claimedErr := m.sweep(ctx, "recover claimed leases", m.deps.Store.RecoverClaimedLeases)
	m.deps.Recorder.Recovered("claimed", claimed)
	m.done(sending+claimed > 0, "monitor.leases_recovered", "sending", sending, "claimed", claimed)
	return errors.Join(err, claimedErr)
}
