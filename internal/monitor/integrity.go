package monitor

import (
	"context"
	"encoding/json"
)

// Integrity looks at what no foreign key and no constraint watches.
type Integrity interface {
	// ReportOrphans names what was written on the last whole day and refers to
	// nothing: an object for each kind, with a count and a sample.
	ReportOrphans(ctx context.Context, workspace string) ([]json.RawMessage, error)
	// AuditHead is the end of a workspace's audit log; seq is 0 when it has none.
	AuditHead(ctx context.Context, workspace string) (seq int64, hash string, err error)
}

// checkIntegrity reports orphans, loudly, and writes the heads of the audit logs into
// the log: outside the database, where whoever changes the one cannot reach the other.
func (m *Monitor) checkIntegrity(ctx context.Context) bool {
	orphans, ok1 := m.sweepOf(ctx, m.deps.Retention.ListAllWorkspaces, "report orphans", func(ctx context.Context, workspace string) (int, error) {
		found, err := m.deps.Integrity.ReportOrphans(ctx, workspace)
		for _, kind := range found {
			m.deps.Log.Error("monitor.orphans", "workspace", workspace, "found", kind)
		}
		return len(found), err
	})
	m.done(false, "monitor.orphans_reported", "kinds", orphans)
	_, ok2 := m.sweepOf(ctx, m.deps.Retention.ListAllWorkspaces, "anchor audit log", func(ctx context.Context, workspace string) (int, error) {
		seq, hash, err := m.deps.Integrity.AuditHead(ctx, workspace)
		if err == nil && seq > 0 {
			m.deps.Log.Info("monitor.audit_head", "workspace", workspace, "seq", seq, "hash", hash)
		}
		return 0, err
	})
	return ok1 && ok2
}
