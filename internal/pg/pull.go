package pg

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Source is a row of due_source.
type Source struct {
	WorkspaceID string
	SourceID    string
	EndpointID  *string
	Kind        string
	Config      json.RawMessage
	Cursor      json.RawMessage
}

// ListDueSources leases sources whose next poll is due.
func (s *Store) ListDueSources(ctx context.Context, workspace string, limit int) ([]Source, error) {
	rows, err := s.pool.Query(ctx, `select workspace_id, source_id, endpoint_id, kind, config_json, cursor_json from autopost.list_due_sources($1, $2)`, workspace, limit)
	if err != nil {
		return nil, fmt.Errorf("list due sources ws=%s: %w", workspace, translate(err))
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Source])
	if err != nil {
		return nil, fmt.Errorf("list due sources ws=%s: %w", workspace, translate(err))
	}
	return list, nil
}

// ChunkAnswer is what ingest_pull_chunk answers.
type ChunkAnswer struct {
	CursorTo  json.RawMessage `json:"cursor_to"`
	Enqueued  int             `json:"enqueued"`
	Duplicate int             `json:"duplicate"`
	Rejected  int             `json:"rejected"`
	Submitted int             `json:"submitted"`
}

// IngestPullChunk takes a chunk of a source's items in one transaction.
func (s *Store) IngestPullChunk(ctx context.Context, workspace, sourceID, endpointID string, items json.RawMessage) (ChunkAnswer, error) {
	a, err := call[ChunkAnswer](ctx, s, `select * from autopost.ingest_pull_chunk($1, $2, $3, $4)`, workspace, sourceID, endpointID, items)
	if err != nil {
		return a, fmt.Errorf("ingest pull chunk source=%s: %w", sourceID, err)
	}
	return a, nil
}

// SetPullCursor ends a poll that went well.
func (s *Store) SetPullCursor(ctx context.Context, workspace, sourceID string, cursor json.RawMessage) error {
	_, err := call[json.RawMessage](ctx, s, `select * from autopost.set_pull_cursor($1, $2, $3)`, workspace, sourceID, cursor)
	if err != nil {
		return fmt.Errorf("set pull cursor source=%s: %w", sourceID, err)
	}
	return nil
}

// RecordPullFailure ends a poll that failed and moves the next one out.
func (s *Store) RecordPullFailure(ctx context.Context, workspace, sourceID, code, message string) error {
	_, err := call[json.RawMessage](ctx, s, `select * from autopost.record_pull_failure($1, $2, $3, $4)`, workspace, sourceID, code, message)
	if err != nil {
		return fmt.Errorf("record pull failure source=%s: %w", sourceID, err)
	}
	return nil
}

// RecordMissingEndpoint records that a source has no enabled endpoint.
func (s *Store) RecordMissingEndpoint(ctx context.Context, workspace, sourceID string) error {
	return s.RecordPullFailure(ctx, workspace, sourceID, "pull_no_endpoint",
		"the source has no enabled endpoint: insert one of kind pull_source with this source_id into workspace_endpoints")
}

// StartIngestRun opens a run; endpointID and sourceID may be "".
func (s *Store) StartIngestRun(ctx context.Context, workspace, kind, endpointID, sourceID string) (string, error) {
	a, err := call[struct {
		RunID string `json:"run_id"`
	}](ctx, s, `select * from autopost.start_ingest_run($1, $2, nullif($3, ''), nullif($4, ''))`, workspace, kind, endpointID, sourceID)
	if err != nil {
		return "", fmt.Errorf("start ingest run ws=%s: %w", workspace, err)
	}
	return a.RunID, nil
}

// FinishIngestRun ends a run with its counts.
func (s *Store) FinishIngestRun(ctx context.Context, workspace, runID string, stats json.RawMessage) error {
	_, err := call[json.RawMessage](ctx, s, `select * from autopost.finish_ingest_run($1, $2, $3)`, workspace, runID, stats)
	if err != nil {
		return fmt.Errorf("finish ingest run %s: %w", runID, err)
	}
	return nil
}
