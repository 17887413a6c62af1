package pg

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// ListWorkspaces names the active workspaces.
func (s *Store) ListWorkspaces(ctx context.Context) ([]string, error) {
	return s.texts(ctx, `select * from autopost.list_workspaces()`)
}

// counted runs a duty that answers how many rows it touched.
func (s *Store) counted(ctx context.Context, duty, key, workspace string) (int, error) {
	a, err := call[map[string]int](ctx, s, `select * from autopost.`+duty+`($1)`, workspace)
	if err != nil {
		return 0, fmt.Errorf("%s ws=%s: %w", duty, workspace, err)
	}
	return a[key], nil
}

// RecoverSendingLeases settles deliveries whose lease ran out, or whose daemon fell silent.
func (s *Store) RecoverSendingLeases(ctx context.Context, workspace string) (int, error) {
	return s.counted(ctx, "recover_sending_leases", "recovered", workspace)
}

// RecoverClaimedLeases returns deliveries that stayed claimed to the queue.
func (s *Store) RecoverClaimedLeases(ctx context.Context, workspace string) (int, error) {
	return s.counted(ctx, "recover_claimed_leases", "recovered", workspace)
}

// ExpireAuthLost ends deliveries that have waited too long for a refused credential.
func (s *Store) ExpireAuthLost(ctx context.Context, workspace string) (int, error) {
	return s.counted(ctx, "expire_auth_lost", "ended", workspace)
}

// RearmGates is the net below the gates.
func (s *Store) RearmGates(ctx context.Context, workspace string) (int, error) {
	return s.counted(ctx, "rearm_gates", "rearmed", workspace)
}

// EnsureEventPartitions makes the day partitions of events ahead of time.
func (s *Store) EnsureEventPartitions(ctx context.Context) error {
	_, err := call[json.RawMessage](ctx, s, `select * from autopost.ensure_event_partitions()`)
	if err != nil {
		return fmt.Errorf("ensure event partitions: %w", err)
	}
	return nil
}

// Finding is one invariant as verify found it: Sample holds offending rows.
type Finding struct {
	Invariant  string          `json:"invariant"`
	Title      string          `json:"title"`
	Violations int64           `json:"violations"`
	Sample     json.RawMessage `json:"sample"`
}

// Verify checks the invariants of a workspace; a finding without violations holds.
func (s *Store) Verify(ctx context.Context, workspace string) ([]Finding, error) {
	rows, err := s.pool.Query(ctx, `select invariant, title, violations, sample from autopost.verify($1)`, workspace)
	if err != nil {
		return nil, fmt.Errorf("verify ws=%s: %w", workspace, translate(err))
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Finding])
	if err != nil {
		return nil, fmt.Errorf("verify ws=%s: %w", workspace, translate(err))
	}
	return list, nil
}
