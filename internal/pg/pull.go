package pg

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

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

// ReadySources names the workspaces in which a source is due, and says how long it is until another one is; nil: there is none.
func (s *Store) ReadySources(ctx context.Context) (workspaces []string, nextIn *time.Duration, err error) {
	a, err := call[struct {
		Workspaces []string
		NextPollMS *int64 `json:"next_poll_ms"`
	}](ctx, s, `select * from autopost.ready_sources()`)
	if err != nil {
		return nil, nil, err
	}
	return a.Workspaces, inMilliseconds(a.NextPollMS), nil
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
	// SkippedBy counts the new items that were only marked as seen, by reason.
	SkippedBy map[string]int `json:"skipped_by"`
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

// PollFailure is why a poll failed.
type PollFailure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	// RetryAfterSeconds is how long the source wants to be left alone; 0 is no wish.
	RetryAfterSeconds int `json:"retry_after_seconds,omitempty"`
	// Gone stops the source: it says that it will not come back.
	Gone bool `json:"gone,omitempty"`
}

// FailPoll ends a poll that failed and moves the next one out.
func (s *Store) FailPoll(ctx context.Context, workspace, sourceID string, failure PollFailure) error {
	_, err := call[json.RawMessage](ctx, s, `select * from autopost.fail_poll($1, $2, $3)`, workspace, sourceID, failure)
	if err != nil {
		return fmt.Errorf("fail poll source=%s: %w", sourceID, err)
	}
	return nil
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

// SourceFields are what changes of a source; what is left out stays as it is.
type SourceFields struct {
	Kind string `json:"kind,omitempty"`
	// Config holds the keys of config_json that change; null takes one away.
	Config     json.RawMessage `json:"config_json,omitempty"`
	Enabled    *bool           `json:"enabled,omitempty"`
	EndpointID string          `json:"endpoint_id,omitempty"`
}

// SourceAnswer is what became of a change of a source, or would.
type SourceAnswer struct {
	Applied bool `json:"applied"`
	Created bool `json:"created"`
	// Reason says why nothing was applied: "unchanged", or "invalid" with Errors.
	Reason string          `json:"reason"`
	Errors []FieldError    `json:"errors"`
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
	// Raw is the whole answer.
	Raw json.RawMessage `json:"-"`
}

func (s *Store) changeSource(ctx context.Context, what, sql string, args ...any) (SourceAnswer, error) {
	raw, err := call[json.RawMessage](ctx, s, sql, args...)
	if err != nil {
		return SourceAnswer{}, fmt.Errorf("%s: %w", what, err)
	}
	answer := SourceAnswer{Raw: raw}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return SourceAnswer{}, fmt.Errorf("%s: decode the answer: %w", what, err)
	}
	return answer, nil
}

// PutSource makes a source, or changes it.
func (s *Store) PutSource(ctx context.Context, a Act, id string, fields SourceFields) (SourceAnswer, error) {
	return s.changeSource(ctx, "put source "+id, `select * from autopost.put_source($1, $2, $3, $4, $5, $6)`,
		a.Workspace, id, fields, a.Operator, a.Reason, a.DryRun)
}

// PollSourceNow makes a source due now.
func (s *Store) PollSourceNow(ctx context.Context, a Act, id string) (SourceAnswer, error) {
	return s.changeSource(ctx, "poll source "+id+" now", `select * from autopost.poll_source_now($1, $2, $3, $4, $5)`,
		a.Workspace, id, a.Operator, a.Reason, a.DryRun)
}

// PollError is what went wrong with a source.
type PollError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// SourceRow is a row of the read model list_sources, keys and passwords masked.
type SourceRow struct {
	SourceID string
	Kind     string
	Enabled  bool
	// Stopped says why the engine disabled it; nil when it did not.
	Stopped         *PollError
	Config          json.RawMessage
	EndpointID      *string
	EndpointEnabled bool
	LastPollAt      *time.Time
	// NextPollAt is nil of a disabled source, and of one that no daemon has seen yet.
	NextPollAt *time.Time
	// Failures in a row.
	Failures  int
	LastError *PollError
	// MovedTo is where the source says it lives now.
	MovedTo *string
	// ItemsSeen counts the items that are remembered.
	ItemsSeen int64
}

// ListSources returns the sources of a workspace by their id; limit is 1 to 10,000.
func (s *Store) ListSources(ctx context.Context, workspace string, limit int) ([]SourceRow, error) {
	return read[SourceRow](ctx, s, "list sources ws="+workspace, `
		select source_id, kind, enabled, stopped, config_json, endpoint_id, endpoint_enabled, last_poll_at, next_poll_at, failures, last_error, moved_to, items_seen
		from autopost.list_sources($1, $2)`, workspace, limit)
}

// GetSource is one source as it is, nothing masked, for a poll by hand; nil when there is none.
func (s *Store) GetSource(ctx context.Context, workspace, id string) (*Source, error) {
	source, err := call[*struct {
		WorkspaceID string          `json:"workspace_id"`
		SourceID    string          `json:"source_id"`
		EndpointID  *string         `json:"endpoint_id"`
		Kind        string          `json:"kind"`
		Config      json.RawMessage `json:"config_json"`
		Cursor      json.RawMessage `json:"cursor_json"`
	}](ctx, s, `select * from autopost.get_source($1, $2)`, workspace, id)
	if err != nil {
		return nil, fmt.Errorf("get source %s ws=%s: %w", id, workspace, err)
	}
	return (*Source)(source), nil
}
