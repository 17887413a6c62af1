package monitor

import "context"

func (m *Monitor) rearmGates(ctx context.Context) error {
	opened, err := m.sweep(ctx, "rearm gates", m.deps.Store.RearmGates)
	m.done(opened > 0, "monitor.gates_rearmed", "gates", opened)
	return err
}
