package monitor

import (
	"context"
	"fmt"
)

// Retention tells where there may be something past its time: in every workspace,
// also in those that rest, and in the partitions that they share.
type Retention interface {
	ListAllWorkspaces(ctx context.Context) ([]string, error)
	// DropEventPartitions drops some days of events whose time is over. more says that
	// there are others; inDefault counts rows that no day's partition took.
	DropEventPartitions(ctx context.Context) (dropped int, more bool, inDefault int, err error)
}

// Intake removes what came in and is decided, some rows a call.
type Intake interface {
	PurgeReceipts(ctx context.Context, workspace string) (purged int, more bool, err error)
	PurgeRuns(ctx context.Context, workspace string) (purged int, more bool, err error)
	PurgeSubmissions(ctx context.Context, workspace string) (purged int, more bool, err error)
}

// Archive removes what is done, some rows a call.
type Archive interface {
	// PurgeDeliveries and PurgeMessages go on where they stopped ("" for the first
	// call) and answer where that is; "" when they have seen all.
	PurgeDeliveries(ctx context.Context, workspace, after string) (purged int, next string, err error)
	PurgeMessages(ctx context.Context, workspace, after string) (purged int, next string, err error)
	PurgeAuditLog(ctx context.Context, workspace string) (purged int, more bool, err error)
	// PurgeWebhookSends removes what result webhooks were told.
	PurgeWebhookSends(ctx context.Context, workspace string) (purged int, more bool, err error)
}

// purgeRounds bounds how often one sweep comes back to a workspace; the next sweep
// goes on.
const purgeRounds = 1000

// purge is one call of a duty that goes on where the last one stopped; next is ""
// when there is nothing more to do.
type purge func(ctx context.Context, workspace, after string) (purged int, next string, err error)

func again(once func(ctx context.Context, workspace string) (int, bool, error)) purge {
	return func(ctx context.Context, workspace, _ string) (int, string, error) {
		n, more, err := once(ctx, workspace)
		if more {
			return n, "more", err
		}
		return n, "", err
	}
}

// purgeAll removes what is past its time, in the order in which one thing lets go of
// the other.
func (m *Monitor) purgeAll(ctx context.Context) bool {
	ok := m.dropPartitions(ctx)
	did, counts := false, []any{}
	for _, duty := range []struct {
		what string
		once purge
	}{
		{"receipts", again(m.deps.Intake.PurgeReceipts)},
		{"runs", again(m.deps.Intake.PurgeRuns)},
		{"submissions", again(m.deps.Intake.PurgeSubmissions)},
		{"deliveries", m.deps.Archive.PurgeDeliveries},
		{"messages", m.deps.Archive.PurgeMessages},
		{"audit_log", again(m.deps.Archive.PurgeAuditLog)},
		{"sealed_secrets", again(m.deps.Expiry.PurgeSealedSecrets)},
		{"webhook_sends", again(m.deps.Archive.PurgeWebhookSends)},
	} {
		n, fine := m.purge(ctx, duty.what, duty.once)
		ok, did, counts = ok && fine, did || n > 0, append(counts, duty.what, n)
	}
	m.done(did, "monitor.purged", counts...)
	return ok
}

// purge goes round the workspaces until none has more, so that a large one holds up
// no other.
func (m *Monitor) purge(ctx context.Context, what string, once purge) (total int, ok bool) {
	left := map[string]string{}
	ok = true
	for round := range purgeRounds {
		var n int
		var fine bool
		n, fine = m.sweepOf(ctx, &m.all, "purge "+what, func(ctx context.Context, workspace string) (int, error) {
			after, more := left[workspace]
			if round > 0 && !more {
				return 0, nil
			}
			delete(left, workspace)
			purged, next, err := once(ctx, workspace, after)
			if err == nil && next != "" {
				left[workspace] = next
			}
			return purged, err
		})
		total, ok = total+n, ok && fine
		if len(left) == 0 || ctx.Err() != nil {
			break
		}
	}
	return total, ok
}

func (m *Monitor) dropPartitions(ctx context.Context) bool {
	for total := 0; ; {
		query, cancel := context.WithTimeout(ctx, queryTimeout)
		dropped, more, inDefault, err := m.deps.Retention.DropEventPartitions(query)
		cancel()
		if err != nil {
			m.fail(ctx, "drop partitions", fmt.Errorf("drop event partitions: %w", err))
			return false
		}
		total += dropped
		if more && dropped > 0 {
			continue
		}
		m.done(total > 0, "monitor.partitions_dropped", "partitions", total)
		if inDefault > 0 {
			m.deps.Log.Warn("monitor.events_without_partition", "rows", inDefault)
		}
		return true
	}
}
