package monitor

import "context"

// Gates arms the gates of channels that have due deliveries and whose wake-up was
// lost; it returns how many there were.
type Gates interface {
	RearmGates(ctx context.Context, workspace string) (int, error)
}

func (m *Monitor) rearmGates(ctx context.Context) bool {
	armed, ok := m.sweep(ctx, "rearm gates", m.deps.Gates.RearmGates)
	m.done(armed > 0, "monitor.gates_rearmed", "gates", armed)
	return ok
}
