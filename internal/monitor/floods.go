package monitor

import "context"

// Floods writes the events of dropped requests that were counted together and
// whose window is over; it returns how many there were.
type Floods interface {
	CloseIngressFloods(ctx context.Context, workspace string) (int, error)
}

// closeFloods goes round all workspaces: a paused one takes requests, too.
func (m *Monitor) closeFloods(ctx context.Context) bool {
	closed, ok := m.sweepOf(ctx, &m.all, "close ingress floods", m.deps.Floods.CloseIngressFloods)
	m.done(closed > 0, "monitor.ingress_floods_closed", "floods", closed)
	return ok
}
