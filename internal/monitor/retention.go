package monitor

import (
	"context"
	"errors"
	"fmt"
)

// maxPurges bounds how often one duty returns to a workspace. The next run continues.
const maxPurges = 1000

// purge is one call of a removal. It continues behind after; next is "" at the end.
type purge func(ctx context.Context, workspace, after string) (purged int, next string, err error)

// repeated makes a purge of a removal that always starts at the oldest row.
func repeated(once func(ctx context.Context, workspace string) (int, bool, error)) purge {
	return func(ctx context.Context, workspace, _ string) (int, string, error) {
		n, more, err := once(ctx, workspace)
		if more {
			return n, "more", err
		}
		return n, "", err
	}
}

// purgeAll removes expired rows. The order follows the references: each removal makes rows of the next ones
// removable.
func (m *Monitor) purgeAll(ctx context.Context) error {
	failures := []error{m.dropPartitions(ctx)}
	did, counts := false, []any{}
	store := m.deps.Store
	for _, table := range []struct {
		name string
		once purge
	}{
		{"receipts", repeated(store.PurgeReceipts)},
		{"runs", repeated(store.PurgeRuns)},
		{"submissions", repeated(store.PurgeSubmissions)},
		{"deliveries", store.PurgeDeliveries},
		{"messages", store.PurgeMessages},
		{"audit_log", repeated(store.PurgeAuditLog)},
		{"sealed_secrets", repeated(store.PurgeSealedSecrets)},
		{"webhook_sends", repeated(store.PurgeWebhookSends)},
		{"conversations", repeated(store.PurgeConversations)},
	} {
		n, err := m.purge(ctx, table.name, table.once)
		failures, did, counts = append(failures, err), did || n > 0, append(counts, table.name, n)
	}
	m.done(did, "monitor.purged", counts...)
	return errors.Join(failures...)
}

// purge visits the workspaces in turns until none has more expired rows, so that a large one does not delay the
// others.
func (m *Monitor) purge(ctx context.Context, name string, once purge) (total int, err error) {
	next := map[string]string{}
	for turn := range maxPurges {
		n, failure := m.sweepAll(ctx, "purge "+name, func(ctx context.Context, workspace string) (int, error) {
			after, more := next[workspace]
			if turn > 0 && !more {
				return 0, nil
			}
			delete(next, workspace)
			purged, behind, err := once(ctx, workspace, after)
			if err == nil && behind != "" {
				next[workspace] = behind
			}
			return purged, err
		})
		total, err = total+n, errors.Join(err, failure)
		if len(next) == 0 || ctx.Err() != nil {
			break
		}
	}
	return total, err
}

func (m *Monitor) dropPartitions(ctx context.Context) error {
	for total := 0; ; {
		query, cancel := context.WithTimeout(ctx, queryTimeout)
		dropped, more, inDefault, err := m.deps.Store.DropEventPartitions(query)
		cancel()
		if err != nil {
			return fmt.Errorf("drop event partitions: %w", err)
		}
		total += dropped
		if more && dropped > 0 {
			continue
		}
		m.done(total > 0, "monitor.partitions_dropped", "partitions", total)
		if inDefault > 0 {
			m.deps.Log.Warn("monitor.events_without_partition", "rows", inDefault)
		}
		return nil
	}
}
