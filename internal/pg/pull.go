package pg

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"autopost/internal/ingest/pull"
	"autopost/internal/problem"
)

// ReadySources returns the workspaces in which a source is due, and the time until another one is due; nil means that
// none will be.
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

// ClaimSources leases sources whose next poll is due to the run.
func (s *Store) ClaimSources(ctx context.Context, workspace, runID string, limit int) ([]pull.Source, error) {
	rows, err := s.calls.Query(ctx, `select workspace_id, source_id, endpoint_id, kind, config_json, cursor_json from autopost.claim_sources($1, $2, $3)`, workspace, runID, limit)
	if err != nil {
		return nil, fmt.Errorf("claim sources ws=%s: %w", workspace, translate(err))
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[pull.Source])
	if err != nil {
		return nil, fmt.Errorf("claim sources ws=%s: %w", workspace, translate(err))
	}
	return list, nil
}

// IngestPullChunk stores a chunk of items in one transaction.
func (s *Store) IngestPullChunk(ctx context.Context, workspace, sourceID, endpointID string, items json.RawMessage) (pull.ChunkAnswer, error) {
	a, err := call[pull.ChunkAnswer](ctx, s, `select * from autopost.ingest_pull_chunk($1, $2, $3, $4)`, workspace, sourceID, endpointID, items)
	if err != nil {
		return a, fmt.Errorf("ingest pull chunk source=%s: %w", sourceID, err)
	}
	return a, nil
}

// SetPullCursor stores the cursor and ends a successful poll.
func (s *Store) SetPullCursor(ctx context.Context, workspace, sourceID string, cursor json.RawMessage) error {
	_, err := call[json.RawMessage](ctx, s, `select * from autopost.set_pull_cursor($1, $2, $3)`, workspace, sourceID, cursor)
	if err != nil {
		return fmt.Errorf("set pull cursor source=%s: %w", sourceID, err)
	}
	return nil
}

// FailPoll ends a failed poll and delays the next one.
func (s *Store) FailPoll(ctx context.Context, workspace, sourceID string, failure pull.Failure) error {
	recorded := struct {
		Code              string `json:"code"`
		Message           string `json:"message"`
		RetryAfterSeconds int    `json:"retry_after_seconds,omitempty"`
		Gone              bool   `json:"gone,omitempty"`
	}{failure.Code, failure.Message, int(failure.RetryAfter / time.Second), failure.Gone}
	_, err := call[json.RawMessage](ctx, s, `select * from autopost.fail_poll($1, $2, $3)`, workspace, sourceID, recorded)
	if err != nil {
		return fmt.Errorf("fail poll source=%s: %w", sourceID, err)
	}
	return nil
}

// StartIngestRun starts an ingest run; endpointID and sourceID may be "".
func (s *Store) StartIngestRun(ctx context.Context, workspace, kind, endpointID, sourceID string) (string, error) {
	a, err := call[struct {
		RunID string `json:"run_id"`
	}](ctx, s, `select * from autopost.start_ingest_run($1, $2, nullif($3, ''), nullif($4, ''))`, workspace, kind, endpointID, sourceID)
	if err != nil {
		return "", fmt.Errorf("start ingest run ws=%s: %w", workspace, err)
	}
	return a.RunID, nil
}

// FinishIngestRun ends an ingest run with its counts.
func (s *Store) FinishIngestRun(ctx context.Context, workspace, runID string, stats json.RawMessage) error {
	_, err := call[json.RawMessage](ctx, s, `select * from autopost.finish_ingest_run($1, $2, $3)`, workspace, runID, stats)
	if err != nil {
		return fmt.Errorf("finish ingest run %s: %w", runID, err)
	}
	return nil
}

// SourceFields are the changed fields of a source. Empty fields stay.
type SourceFields struct {
	Kind string `json:"kind,omitempty"`
	// Config contains the changed keys of config_json; null removes a key.
	Config     json.RawMessage `json:"config_json,omitempty"`
	Enabled    *bool           `json:"enabled,omitempty"`
	EndpointID string          `json:"endpoint_id,omitempty"`
}

// SourceAnswer is the answer to a change of a source. A dry run has the same answer.
type SourceAnswer struct {
	whole

	Applied bool `json:"applied"`
	Created bool `json:"created"`
	// Reason is "unchanged", or "invalid" with Errors, if nothing was changed.
	Reason string          `json:"reason"`
	Errors []problem.Fault `json:"errors"`
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
}

// PutSource adds or changes a source.
func (s *Store) PutSource(ctx context.Context, a OperatorAction, source string, fields any) (Written, error) {
	return s.write(ctx, a, `autopost.put_source(@workspace, @id, @fields, @operator, @reason, @dry_run)`, args{"id": source, "fields": fields})
}

// PollSourceNow makes a source due now.
func (s *Store) PollSourceNow(ctx context.Context, a OperatorAction, source string) (Written, error) {
	return s.write(ctx, a, `autopost.poll_source_now(@workspace, @id, @operator, @reason, @dry_run)`, args{"id": source})
}

// PollError is the error of a source.
type PollError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// SourceRow is a row of list_sources, with masked secrets.
type SourceRow struct {
	SourceID string `json:"source_id"`
	Kind     string `json:"kind"`
	Enabled  bool   `json:"enabled"`
	// Stopped is the reason why autopost disabled it; nil if it did not.
	Stopped         *PollError      `json:"stopped"`
	Config          json.RawMessage `json:"config_json"`
	EndpointID      *string         `json:"endpoint_id"`
	EndpointEnabled bool            `json:"endpoint_enabled"`
	LastPollAt      *time.Time      `json:"polled_at"`
	// NextPollAt is nil for a disabled source, and before the first poll.
	NextPollAt *time.Time `json:"next_poll_at"`
	// Failures in a row.
	Failures  int        `json:"failures"`
	LastError *PollError `json:"last_error"`
	// MovedTo is the new address that the source reported.
	MovedTo *string `json:"moved_to"`
	// ItemsSeen counts the remembered items.
	ItemsSeen int64 `json:"items_seen"`
}

// ListSources returns the sources of a workspace by id; limit is 1 to 10,000.
func (s *Store) ListSources(ctx context.Context, workspace string, limit int) ([]SourceRow, error) {
	return read[SourceRow](ctx, s, "list sources ws="+workspace, `
		select source_id, kind, enabled, stopped, config_json, endpoint_id, endpoint_enabled, last_poll_at, next_poll_at, failures, last_error, moved_to, items_seen
		from autopost.list_sources($1, $2)`, workspace, limit)
}

// GetSource returns a source without masks, for a test poll; nil if it does not exist.
func (s *Store) GetSource(ctx context.Context, workspace, id string) (*pull.Source, error) {
	source, err := call[*pull.Source](ctx, s, `select * from autopost.get_source($1, $2)`, workspace, id)
	if err != nil {
		return nil, fmt.Errorf("get source %s ws=%s: %w", id, workspace, err)
	}
	return source, nil
}

var _ pull.Store = (*Store)(nil)
