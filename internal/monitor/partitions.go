package monitor

import (
	"context"
	"fmt"
)

// Partitions makes the event partitions of the days to come, where they are missing.
type Partitions interface {
	EnsureEventPartitions(ctx context.Context) error
}

func (m *Monitor) ensurePartitions(ctx context.Context) bool {
	query, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	if err := m.deps.Partitions.EnsureEventPartitions(query); err != nil {
		m.fail(ctx, "partitions", fmt.Errorf("ensure event partitions: %w", err))
		return false
	}
	m.done(true, "monitor.partitions_ensured")
	return true
}
