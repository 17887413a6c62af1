package monitor

import "context"

// closeDropCounters covers paused workspaces, too: they also receive requests.
func (m *Monitor) closeDropCounters(ctx context.Context) error {
	closed, err := m.sweepAll(ctx, "close ingress floods", m.deps.Store.CloseIngressFloods)
	m.done(closed > 0, "monitor.ingress_floods_closed", "floods", closed)
	return err
}
