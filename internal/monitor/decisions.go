package monitor

import "context"

// expireSubmissions ends submissions that waited too long for a decision.
func (m *Monitor) expireSubmissions(ctx context.Context) error {
	ended, err := m.sweep(ctx, "expire submissions", m.deps.Store.ExpireSubmissions)
	m.done(ended > 0, "monitor.submissions_expired", "submissions", ended)
	return err
}
