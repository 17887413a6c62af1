package monitor

import (
	"context"
	"fmt"
	"time"
)

// statisticsInterval is how long plans for few rows may run on many rows.
const statisticsInterval = 15 * time.Second

func (m *Monitor) ensurePartitions(ctx context.Context) error {
	query, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	if err := m.deps.Store.EnsureEventPartitions(query); err != nil {
		return fmt.Errorf("ensure event partitions: %w", err)
	}
	m.done(true, "monitor.partitions_ensured")
	return nil
}

func (m *Monitor) refreshStatistics(ctx context.Context) error {
	query, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	analyzed, err := m.deps.Store.RefreshStatistics(query)
	if err != nil {
		return fmt.Errorf("refresh statistics: %w", err)
	}
	m.done(len(analyzed) > 0, "monitor.statistics_refreshed", "tables", analyzed)
	return nil
}
