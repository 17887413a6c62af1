package monitor

import (
	"context"
	"encoding/json"
)

// Integrity looks at what no foreign key and no constraint watches.
type Integrity interface {
	// CheckIntegrity names what was written on the last whole day and refers to nothing,
	// an object for each kind with a count and a sample, and what is wrong with the audit
	// log; either is an alert.
	CheckIntegrity(ctx context.Context, workspace string) (orphans, audit []json.RawMessage, err error)
	// AuditHead is the end of a workspace's audit log; seq is 0 when it has none.
	AuditHead(ctx context.Context, workspace string) (seq int64, hash string, err error)
}

// checkIntegrity reports orphans and damaged audit logs, loudly, and writes the heads of
// the audit logs into the log: outside the database, where whoever changes the one cannot
// reach the other.
func (m *Monitor) checkIntegrity(ctx context.Context) bool {
	found, ok1 := m.sweepOf(ctx, &m.all, "check integrity", func(ctx context.Context, workspace string) (int, error) {
		orphans, audit, err := m.deps.Integrity.CheckIntegrity(ctx, workspace)
		for _, kind := range orphans {
			m.deps.Log.Error("monitor.orphans", "workspace_id", workspace, "found", kind)
		}
		for _, fault := range audit {
			m.deps.Log.Error("monitor.audit_chain", "workspace_id", workspace, "found", fault)
		}
		return len(orphans) + len(audit), err
	})
	m.done(false, "monitor.integrity_checked", "found", found)
	_, ok2 := m.sweepOf(ctx, &m.all, "anchor audit log", func(ctx context.Context, workspace string) (int, error) {
		seq, hash, err := m.deps.Integrity.AuditHead(ctx, workspace)
		if err == nil && seq > 0 {
			m.deps.Log.Info("monitor.audit_head", "workspace_id", workspace, "seq", seq, "hash", hash)
		}
		return 0, err
	})
	return ok1 && ok2
}
