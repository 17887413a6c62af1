package monitor

import (
	"context"
	"errors"
)

// checkIntegrity logs orphans, faults of the audit logs, and the heads of the audit logs. The log is outside the
// database: an intruder who changes the one does not reach the other.
func (m *Monitor) checkIntegrity(ctx context.Context) error {
	found, err := m.sweepAll(ctx, "check integrity", func(ctx context.Context, workspace string) (int, error) {
		orphans, audit, err := m.deps.Store.CheckIntegrity(ctx, workspace)
		for _, kind := range orphans {
			m.deps.Log.Error("monitor.orphans", "workspace_id", workspace, "found", kind)
		}
		for _, fault := range audit {
			m.deps.Log.Error("monitor.audit_chain", "workspace_id", workspace, "found", fault)
		}
		return len(orphans) + len(audit), err
	})
	m.done(false, "monitor.integrity_checked", "found", found)
	_, headErr := m.sweepAll(ctx, "anchor audit log", func(ctx context.Context, workspace string) (int, error) {
		seq, hash, err := m.deps.Store.AuditHead(ctx, workspace)
		if err == nil && seq > 0 {
			m.deps.Log.Info("monitor.audit_head", "workspace_id", workspace, "seq", seq, "hash", hash)
		}
		return 0, err
	})
	return errors.Join(err, headErr)
}
