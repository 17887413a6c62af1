package monitor

import "context"

// AuthLost ends deliveries that have waited too long for a credential that the
// platform refuses; it returns how many there were.
type AuthLost interface {
	ExpireAuthLost(ctx context.Context, workspace string) (int, error)
}

func (m *Monitor) expireAuthLost(ctx context.Context) bool {
	ended, ok := m.sweep(ctx, "expire auth lost", m.deps.AuthLost.ExpireAuthLost)
	m.done(ended > 0, "monitor.auth_lost_expired", "deliveries", ended)
	return ok
}
