package pg

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/jackc/pgx/v5"

	"autopost/internal/api"
	"autopost/internal/api/rest"
)

// The API and the commands share the types of package rest.
type (
	// OperatorAction names the workspace, the operator and the reason of a manual change.
	OperatorAction = rest.OperatorAction
	// Written is the answer to a manual change. Decode reads it.
	Written = rest.Written
	// Query selects rows of a list.
	Query = rest.Query
)

// lists are the statements of the lists, by the name of their function. A row is a JSON object; infinity becomes null.
var lists = map[string]string{
	"list_deliveries": `select to_jsonb(r) - 'workspace_id' || jsonb_build_object('due_at', nullif(r.due_at, 'infinity'), 'next_retry_at', nullif(r.next_retry_at, 'infinity'))
		from autopost.list_deliveries(@workspace, @filter, @limit) r`,
	"list_events":      `select to_jsonb(r) - 'workspace_id' from autopost.list_events(@workspace, @filter, @limit) r`,
	"list_acts":        `select to_jsonb(r) - 'workspace_id' from autopost.list_acts(@workspace, @filter, @limit) r`,
	"list_messages":    `select to_jsonb(r) - 'workspace_id' from autopost.list_messages(@workspace, @filter, @limit) r`,
	"list_runs":        `select to_jsonb(r) - 'workspace_id' from autopost.list_runs(@workspace, @filter, @limit) r`,
	"list_drafts":      `select to_jsonb(r) from autopost.list_drafts(@workspace, @filter, @limit) r`,
	"list_recurrences": `select to_jsonb(r) from autopost.list_recurrences(@workspace, @filter, @limit) r`,
	"list_occurrences": `select to_jsonb(r) from autopost.list_occurrences(@workspace, @filter, @limit) r`,
	"list_submissions": `select to_jsonb(r) - 'workspace_id' from autopost.list_submissions(@workspace, @filter, @limit) r`,
	"list_x_posts":     `select to_jsonb(r) - 'workspace_id' || jsonb_build_object('nextAttemptAt', nullif(r."nextAttemptAt", 'infinity')) from autopost.list_x_posts(@workspace, @filter, @limit) r`,
	"list_bot_rules":   `select to_jsonb(r) from autopost.list_bot_rules(@workspace, @filter, @limit) r`,
	"list_bot_chats":   `select to_jsonb(r) from autopost.list_bot_chats(@workspace, @filter, @limit) r`,
	"list_audit":       `select to_jsonb(r) - 'workspace_id' from autopost.list_audit(@workspace, @filter, @limit) r`,
	"list_templates":   `select to_jsonb(r) - 'workspace_id' from autopost.list_templates(@workspace, @filter, @limit) r`,
	"list_api_keys":    `select to_jsonb(r) - 'workspace_id' from autopost.list_api_keys(@workspace, @filter, @limit) r`,
	"queue_snapshot": `select to_jsonb(r) - 'workspace_id' || jsonb_build_object('oldest_due_at', nullif(r.oldest_due_at, 'infinity'))
		from autopost.queue_snapshot(@workspace) r`,
	"list_webhook_deliveries": `select to_jsonb(r) - '{workspace_id,webhook_id}'::text[] from autopost.list_webhook_deliveries(@workspace, @filter, @limit) r`,
	"list_members":            `select r from autopost.list_members(@workspace, @filter, @limit) r`,
	"list_invitations":        `select r from autopost.list_invitations(@workspace, @filter, @limit) r`,
	"list_configuration":      `select r from autopost.list_configuration(@workspace, @kind, @filter, @limit) r`,

	"list_media_origins": `select r from autopost.list_media_origins(@workspace, @filter, @limit) r`,
	"list_publish_jobs":  `select to_jsonb(r) - 'workspace_id' from autopost.list_publish_jobs(@workspace, @filter, @limit) r`,
}

// List returns at most q.Limit rows, each a JSON object.
func (s *Store) List(ctx context.Context, q Query) ([]json.RawMessage, error) {
	sql, known := lists[q.Function]
	if !known {
		return nil, fmt.Errorf("unknown list %q", q.Function)
	}
	filter := q.Filter
	if filter == nil {
		filter = struct{}{}
	}
	rows, err := named(ctx, s, sql, args{"workspace": q.Workspace, "kind": q.Kind, "filter": filter, "limit": q.Limit})
	if err != nil {
		return nil, fmt.Errorf("%s ws=%s: %w", q.Function, q.Workspace, err)
	}
	list := make([]json.RawMessage, len(rows))
	for i, row := range rows {
		list[i] = row.raw
	}
	return list, nil
}

// List returns the rows of Store.List as values of Row.
func List[Row any](ctx context.Context, s *Store, q Query) ([]Row, error) {
	list, err := s.List(ctx, q)
	if err != nil {
		return nil, err
	}
	rows := make([]Row, len(list))
	for i, raw := range list {
		if err := json.Unmarshal(raw, &rows[i]); err != nil {
			return nil, fmt.Errorf("%s ws=%s: decode a row: %w", q.Function, q.Workspace, err)
		}
	}
	return rows, nil
}

// args are the arguments of a statement by their names. A statement refers to one as @name.
type args map[string]any

// write runs a manual change, which is a call of one function, in one statement. A change with an Idempotency-Key
// runs between begin_request and finish_request, which stores the answer in the same transaction. A dry run is
// not stored.
func (s *Store) write(ctx context.Context, a OperatorAction, change string, given args) (Written, error) {
	sql := `select jsonb_build_object('status', 'done', 'answer', ` + change + `)`
	if a.Once.Key != "" && !a.DryRun {
		sql = `select autopost.finish_request(@workspace, @key_of_caller::text::uuid, @once, @request_hash, b.begun, case when b.begun ->> 'status' = 'fresh' then ` + change + ` end)
			from autopost.begin_request(@workspace, @key_of_caller::text::uuid, @once, @request_hash) as b(begun)`
	}
	all := args{
		"workspace": a.Workspace, "operator": a.Operator, "reason": a.Reason, "dry_run": a.DryRun,
		"key_of_caller": a.Once.KeyID, "once": a.Once.Key, "request_hash": a.Once.RequestHash,
	}
	maps.Copy(all, given)
	rows, err := named(ctx, s, sql, all)
	if err != nil {
		return Written{}, fmt.Errorf("%s ws=%s: %w", functionOf(change), a.Workspace, err)
	}
	var written Written
	if err := json.Unmarshal(rows[0].raw, &written); err != nil {
		return Written{}, fmt.Errorf("%s ws=%s: decode the answer: %w", functionOf(change), a.Workspace, err)
	}
	return written, nil
}

// Decode reads the answer of a manual change into T. It takes both results of the change:
//
//	answer, err := pg.Decode[pg.ActAnswer](store.PauseChannel(ctx, action, channel, time.Hour))
func Decode[T any](w Written, err error) (T, error) {
	var answer T
	if err != nil {
		return answer, err
	}
	if err := json.Unmarshal(w.Answer, &answer); err != nil {
		return answer, fmt.Errorf("decode the answer: %w", err)
	}
	if r, ok := any(&answer).(interface{ keep(raw json.RawMessage) }); ok {
		r.keep(w.Answer)
	}
	return answer, nil
}

// whole is part of an answer that commands print as it came.
type whole struct {
	// Raw is the whole answer.
	Raw json.RawMessage `json:"-"`
}

func (w *whole) keep(raw json.RawMessage) { w.Raw = raw }

// named runs a statement with named arguments.
func named(ctx context.Context, s *Store, sql string, given args) ([]answer, error) {
	sql, inOrder, err := pgx.NamedArgs(given).RewriteQuery(ctx, nil, sql, nil)
	if err != nil {
		return nil, err
	}
	return query(ctx, s, sql, inOrder...)
}

// BeginRequest returns the state of a request: fresh, replayed with its answer, other_request or in_progress.
func (s *Store) BeginRequest(ctx context.Context, workspace string, once rest.OnceKey) (Written, error) {
	w, err := call[Written](ctx, s, `select * from autopost.begin_request($1, $2::text::uuid, $3, $4)`, workspace, once.KeyID, once.Key, once.RequestHash)
	if err != nil {
		return w, fmt.Errorf("begin request ws=%s: %w", workspace, err)
	}
	return w, nil
}

// GetRun returns an ingest run with the results of its posts as JSON; nil if it does not exist.
func (s *Store) GetRun(ctx context.Context, workspace, run string) (json.RawMessage, error) {
	raw, err := call[json.RawMessage](ctx, s, `select * from autopost.get_run($1, $2::text::uuid)`, workspace, run)
	if err != nil {
		return nil, fmt.Errorf("get run %s ws=%s: %w", run, workspace, err)
	}
	return raw, nil
}

// GetMessage returns a message with its deliveries as JSON; nil if it does not exist.
func (s *Store) GetMessage(ctx context.Context, workspace, message string) (json.RawMessage, error) {
	raw, err := call[json.RawMessage](ctx, s, `select * from autopost.get_message($1, $2::text::uuid)`, workspace, message)
	if err != nil {
		return nil, fmt.Errorf("get message %s ws=%s: %w", message, workspace, err)
	}
	return raw, nil
}

// GetSubmission returns a submission with its post as JSON; nil if it does not exist.
func (s *Store) GetSubmission(ctx context.Context, workspace, submission string) (json.RawMessage, error) {
	raw, err := call[json.RawMessage](ctx, s, `select * from autopost.get_submission($1, $2::text::uuid)`, workspace, submission)
	if err != nil {
		return nil, fmt.Errorf("get submission %s ws=%s: %w", submission, workspace, err)
	}
	return raw, nil
}

// GetDelivery returns a delivery with its history as JSON; nil if it does not exist.
func (s *Store) GetDelivery(ctx context.Context, workspace, delivery string) (json.RawMessage, error) {
	raw, err := call[json.RawMessage](ctx, s, `select * from autopost.get_delivery($1, $2::text::uuid)`, workspace, delivery)
	if err != nil {
		return nil, fmt.Errorf("get delivery %s ws=%s: %w", delivery, workspace, err)
	}
	return raw, nil
}

var _ api.Store = (*Store)(nil)
