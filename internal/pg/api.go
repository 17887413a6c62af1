package pg

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

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
	"list_deliveries": object(`delivery_id message_id channel_id platform target_id status attempt due_at? scheduled_for next_retry_at? provider_message_id sent_at
		last_error rendered_text render_meta unknown_outcomes trace_id ingest_run_id created_at updated_at finished_at`) + filtered("list_deliveries"),
	"list_events": object(`id ts action result attempt delivery_id message_id channel_id error meta payload_ref`) + filtered("list_events"),
	"list_acts": object(`act_id delivery_id message_id channel_id kind status due_at next_at attempt rendered_text started_at last_error operator reason created_at
		updated_at finished_at`) + filtered("list_acts"),
	"list_messages":    object(`message_id excerpt media tags source_ref content_hash seen_count run_id created_at last_seen_at counts source`) + filtered("list_messages"),
	"list_runs":        object(`run_id kind endpoint_id source_id started_at finished_at stats`) + filtered("list_runs"),
	"list_drafts":      object(`draft_id endpoint_id excerpt media version created_at updated_at`) + filtered("list_drafts"),
	"list_recurrences": object(`recurrence_id endpoint_id rule zone starts_at payloads enabled next_at posts last_error author created_at updated_at`) + filtered("list_recurrences"),
	"list_occurrences": object(`occurrence_id recurrence_id at status message_id submission_id moved reason error`) + filtered("list_occurrences"),
	"list_submissions": object(`submission_id kind endpoint_id source_ref status excerpt media attempt next_attempt_at last_error run_id message_id created_at updated_at
		moderated text digest expires_at author decision decided_by decided_at decision_source decision_reason`) + filtered("list_submissions"),
	"list_x_posts": object(`_id eventType status mediaType mediaUrl avatarIds encounterId templateKey resolvedContent hash attempts nextAttemptAt? lastError tweetId
		tweetUrl meta createdAt updatedAt postedAt rejectedReason duplicateOf digest backfill`) + filtered("list_x_posts"),
	"list_bot_rules":          object(`rule_id version enabled intent state keywords priority max_turns response_template buttons next_state created_at`) + filtered("list_bot_rules"),
	"list_bot_chats":          object(`provider auth_ref chat_id state expires_at waiting failing unsent updated_at`) + filtered("list_bot_chats"),
	"list_audit":              object(`id seq ts operator action reason subject before after hash login`) + filtered("list_audit"),
	"list_templates":          object(`template_id platform version body defaults vars sanitize parse_mode max_length enabled created_at`) + filtered("list_templates"),
	"list_api_keys":           object(`key_id name role scopes enabled expires_at last_used_at replaced_by created_at`) + filtered("list_api_keys"),
	"queue_snapshot":          object(`status deliveries oldest_due_at?`) + ` from autopost.queue_snapshot(@workspace)`,
	"list_webhook_deliveries": object(`id ts type status attempt due_at http_status error created_at attempted_at finished_at body`) + filtered("list_webhook_deliveries"),
	"list_publish_jobs": object(`job_id platform source_id status title payload_digest digest error submission_id delivery_id platform_post_id post_url published_at
		imported created_at updated_at`) + filtered("list_publish_jobs"),
	"list_members":       `select *` + filtered("list_members"),
	"list_invitations":   `select *` + filtered("list_invitations"),
	"list_configuration": `select * from autopost.list_configuration(@workspace, @kind, @filter, @limit)`,
	"list_media_origins": `select *` + filtered("list_media_origins"),
}

// filtered is the call of a list by its workspace, filter and limit.
func filtered(function string) string {
	return ` from autopost.` + function + `(@workspace, @filter, @limit)`
}

// object selects columns as one JSON object. It names them, because a cluster does not run a function on the node of its
// workspace if the statement uses the row as a whole. Infinity in a column with a question mark becomes null.
func object(columns string) string {
	var pairs []string
	for _, column := range strings.Fields(columns) {
		name, infinite := strings.CutSuffix(column, "?")
		value := pgx.Identifier{name}.Sanitize()
		if infinite {
			value = `nullif(` + value + `, 'infinity')`
		}
		pairs = append(pairs, `'`+name+`', `+value)
	}
	return `select jsonb_build_object(` + strings.Join(pairs, ", ") + `)`
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

// write runs a manual change, which is a call of one function, as one bare call. A change with an Idempotency-Key is a
// call of write_once, which stores the answer in the same transaction. A dry run is not stored. If given has "shown",
// the answer gets its fields.
func (s *Store) write(ctx context.Context, a OperatorAction, change string, given args) (Written, error) {
	all := args{"workspace": a.Workspace, "operator": a.Operator, "reason": a.Reason, "dry_run": a.DryRun}
	maps.Copy(all, given)
	name := functionOf(change)
	if a.Once.Key != "" && !a.DryRun {
		w, err := call[Written](ctx, s, `select * from autopost.write_once($1, $2::text::uuid, $3, $4, $5, $6)`,
			a.Workspace, a.Once.KeyID, a.Once.Key, a.Once.RequestHash, name, all)
		if err != nil {
			return Written{}, fmt.Errorf("%s ws=%s: %w", name, a.Workspace, err)
		}
		return w, nil
	}
	answer := `r`
	if given["shown"] != nil {
		answer = `r || @shown::jsonb`
	}
	rows, err := named(ctx, s, `select `+answer+` from `+change+` r`, all)
	if err != nil {
		return Written{}, fmt.Errorf("%s ws=%s: %w", name, a.Workspace, err)
	}
	return Written{Status: "done", Answer: rows[0].raw}, nil
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
