package monitor

import (
	"context"
	"fmt"
	"time"
)

// statisticsEvery is for how long plans that were made for a few rows may meet many.
const statisticsEvery = 15 * time.Second

// Tables keeps what the tables need besides their rows.
type Tables interface {
	// EnsureEventPartitions makes the event partitions of the days to come, where they are missing.
	EnsureEventPartitions(ctx context.Context) error
	// RefreshStatistics makes the planner's statistics of tables that have outgrown theirs many times, and names these.
	RefreshStatistics(ctx context.Context) ([]string, error)
}

func (m *Monitor) ensurePartitions(ctx context.Context) bool {
	query, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	if err := m.deps.Tables.EnsureEventPartitions(query); err != nil {
		m.fail(ctx, "partitions", fmt.Errorf("ensure event partitions: %w", err))
		return false
	}
	m.done(true, "monitor.partitions_ensured")
	return true
}

func (m *Monitor) refreshStatistics(ctx context.Context) bool {
	query, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	analyzed, err := m.deps.Tables.RefreshStatistics(query)
	if err != nil {
		m.fail(ctx, "statistics", fmt.Errorf("refresh statistics: %w", err))
		return false
	}
	m.done(len(analyzed) > 0, "monitor.statistics_refreshed", "tables", analyzed)
	return true
}
