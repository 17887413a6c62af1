package pg

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/jackc/pgx/v5"
)

// lists are the reading functions that the API pages through, each with how a row of it is shown: infinity is no time to anyone outside.
var lists = map[string]string{
	"list_deliveries": `select to_jsonb(r) - 'workspace_id' || jsonb_build_object('due_at', nullif(r.due_at, 'infinity'), 'next_retry_at', nullif(r.next_retry_at, 'infinity'))
		from autopost.list_deliveries(@workspace, @filter, @limit) r`,
	"list_events":    `select to_jsonb(r) - 'workspace_id' from autopost.list_events(@workspace, @filter, @limit) r`,
	"list_acts":      `select to_jsonb(r) - 'workspace_id' from autopost.list_acts(@workspace, @filter, @limit) r`,
	"list_messages":  `select to_jsonb(r) - 'workspace_id' from autopost.list_messages(@workspace, @filter, @limit) r`,
	"list_runs":      `select to_jsonb(r) - 'workspace_id' from autopost.list_runs(@workspace, @filter, @limit) r`,
	"list_audit":     `select to_jsonb(r) - 'workspace_id' from autopost.list_audit(@workspace, @filter, @limit) r`,
	"list_templates": `select to_jsonb(r) - 'workspace_id' from autopost.list_templates(@workspace, @filter, @limit) r`,
	"list_api_keys":  `select to_jsonb(r) - 'workspace_id' from autopost.list_api_keys(@workspace, @filter, @limit) r`,
	"queue_snapshot": `select to_jsonb(r) - 'workspace_id' || jsonb_build_object('oldest_due_at', nullif(r.oldest_due_at, 'infinity'))
		from autopost.queue_snapshot(@workspace) r`,
	"list_webhook_deliveries": `select to_jsonb(r) - '{workspace_id,webhook_id}'::text[] from autopost.list_webhook_deliveries(@workspace, @filter, @limit) r`,
	"list_configuration":      `select r from autopost.list_configuration(@workspace, @kind, @filter, @limit) r`,
}

// looks are the functions that answer one thing and write nothing.
var looks = map[string]string{
	"get_run":          `autopost.get_run(@workspace, @run_id::text::uuid)`,
	"get_message":      `autopost.get_message(@workspace, @message_id::text::uuid)`,
	"get_delivery":     `autopost.get_delivery(@workspace, @delivery_id::text::uuid)`,
	"forecast":         `autopost.forecast(@workspace)`,
	"health_snapshot":  `autopost.health_snapshot(@workspace)`,
	"plan":             `autopost.plan(@workspace, @post, @at::text::timestamptz)`,
	"get_media_origin": `autopost.get_media_origin(@workspace, @blob_ref)`,
	"begin_request":    `autopost.begin_request(@workspace, @key_of_caller::text::uuid, @once, @request_hash)`,
	"preview_template": `autopost.preview_template(@workspace, @template_id, @platform, @template, @post)`,
}

// quotaKey are the two arguments that an id, "SUBJECT/SECONDS", stands for.
const quotaKey = `regexp_replace(@id, '/[^/]*$', ''), substring(@id from '/(\d{1,9})$')::int`

// writes are the functions that a write of the API may end in. What is not named here cannot be asked for.
var writes = map[string]string{
	"submit_post":      `autopost.submit_post(@workspace, nullif(@endpoint_id, ''), 'api', @post)`,
	"put_media_origin": `autopost.put_media_origin(@workspace, @blob_ref, @origin_url, @content_type, @size_bytes, @kind, @width, @height) || @shown::jsonb`,
	"record_upload":    `autopost.record_upload(@workspace, @platform, @auth_ref, @blob_ref, @kind, @used, @operator, @reason)`,
	"manual_requeue":   `autopost.manual_requeue(@workspace, @delivery_ids::text[]::uuid[], @operator, @reason)`,
	"skip_deliveries":  `autopost.skip_deliveries(@workspace, @delivery_ids::text[]::uuid[], @operator, @reason, @dry_run)`,
	"request_acts": `autopost.request_acts(@workspace, @kind, @message_id::text::uuid, @delivery_ids::text[]::uuid[], @changes, @at::text::timestamptz,
		@operator, @reason, @dry_run)`,
	"cancel_acts":       `autopost.cancel_acts(@workspace, @act_ids::text[]::uuid[], @operator, @reason, @dry_run)`,
	"resolve_unknown":   `autopost.resolve_unknown(@workspace, @delivery_id::text::uuid, @verdict, nullif(@provider_message_id, ''), @operator, @reason)`,
	"release_stale":     `autopost.release_stale(@workspace, @older_than_seconds, @operator, @reason, @dry_run)`,
	"pause_channel":     `autopost.pause_channel(@workspace, @channel_id, @seconds, @operator, @reason, @dry_run)`,
	"resume_channel":    `autopost.resume_channel(@workspace, @channel_id, @operator, @reason, @dry_run)`,
	"rotate_auth":       `autopost.rotate_auth(@workspace, @channel_id, @auth_ref, nullif(@rate_group, ''), @operator, @reason, @dry_run)`,
	"requeue_auth_lost": `autopost.requeue_auth_lost(@workspace, @auth_ref, @operator, @reason, @dry_run)`,
	"disable_group":     `autopost.disable_group(@workspace, @platform, @rate_group, @operator, @reason, @dry_run)`,
	"enable_group":      `autopost.enable_group(@workspace, @platform, @rate_group, @operator, @reason, @dry_run)`,
	"put_template":      `autopost.put_template(@workspace, @template_id, @platform, @template, @operator, @reason)`,
	"enable_template":   `autopost.enable_template(@workspace, @template_id, @platform, @version, @enabled, @operator, @reason)`,
	"disable_api_key":   `autopost.disable_api_key(@workspace, @key_id::text::uuid, @operator, @reason, @dry_run)`,
	"put_channel":       `autopost.put_channel(@workspace, @id, @fields, @operator, @reason, @dry_run)`,
	"put_workspace":     `autopost.put_workspace(@workspace, @fields, @operator, @reason, @dry_run)`,
	"disable_endpoint":  `autopost.disable_endpoint(@workspace, @id, @operator, @reason, @dry_run)`,
	"put_endpoint":      `autopost.put_endpoint(@workspace, @id, @fields, @operator, @reason, @dry_run)`,
	"put_source":        `autopost.put_source(@workspace, @id, @fields, @operator, @reason, @dry_run)`,
	"put_rate_group":    `autopost.put_rate_group(@workspace, @platform, @rate_group, @fields, @operator, @reason, @dry_run)`,
	"put_webhook":       `autopost.put_webhook(@workspace, @id, @fields, @operator, @reason, @dry_run)`,
	"test_webhook":      `autopost.test_webhook(@workspace, @id, @operator, @reason)`,
	"replay_webhook":    `autopost.replay_webhook(@workspace, @id, @what, @operator, @reason, @dry_run)`,
	"put_alert_target":  `autopost.put_alert_target(@workspace, @id, @fields, @operator, @reason, @dry_run)`,
	"test_alert_target": `autopost.test_alert_target(@workspace, @id, @operator, @reason, @dry_run)`,
	"acknowledge_alert": `autopost.acknowledge_alert(@workspace, @id::text::uuid, @operator, @reason, @dry_run)`,
	"put_quota":         `autopost.put_quota(@workspace, ` + quotaKey + `, @fields, @operator, @reason, @dry_run)`,
	"delete_quota":      `autopost.delete_quota(@workspace, ` + quotaKey + `, @operator, @reason, @dry_run)`,
	"put_budget":        `autopost.put_budget(@workspace, @id, @fields, @operator, @reason, @dry_run)`,
	"rotate_endpoint":   `autopost.rotate_endpoint(@workspace, @id, @fields, @operator, @reason, @dry_run)`,
}

// dryRuns are other functions that say what a write without a dry run of its own would do.
var dryRuns = map[string]string{
	"manual_requeue": `autopost.manual_requeue_preview(@workspace, @delivery_ids::text[]::uuid[])`,
}

// List asks a reading function, one of list_deliveries, list_events, list_messages, list_runs, list_audit, list_templates,
// list_api_keys, list_webhook_deliveries, list_configuration (with its kind, else "") and queue_snapshot, for at most limit rows, each a JSON object.
func (s *Store) List(ctx context.Context, function, workspace, kind string, filter map[string]any, limit int) ([]json.RawMessage, error) {
	sql, known := lists[function]
	if !known {
		return nil, fmt.Errorf("%s is no list", function)
	}
	if filter == nil {
		filter = map[string]any{}
	}
	rows, err := named(ctx, s, sql, map[string]any{"workspace": workspace, "kind": kind, "filter": filter, "limit": limit})
	if err != nil {
		return nil, fmt.Errorf("%s ws=%s: %w", function, workspace, err)
	}
	list := make([]json.RawMessage, len(rows))
	for i, row := range rows {
		list[i] = row.raw
	}
	return list, nil
}

// Look asks a function that answers one thing: get_run, get_message, get_delivery, get_media_origin, forecast, health_snapshot, plan, preview_template or
// begin_request. nil: there is none.
func (s *Store) Look(ctx context.Context, function, workspace string, args map[string]any) (json.RawMessage, error) {
	call, known := looks[function]
	if !known {
		return nil, fmt.Errorf("%s answers nothing", function)
	}
	rows, err := named(ctx, s, `select * from `+call, withArgs(args, map[string]any{"workspace": workspace}))
	if err != nil {
		return nil, fmt.Errorf("%s ws=%s: %w", function, workspace, err)
	}
	return rows[0].raw, nil
}

// Write is a write of the API.
type Write struct {
	Workspace string
	// Function is one of those that this package names as writes.
	Function string
	Operator string
	Reason   string
	DryRun   bool
	// OnceKey is the caller's name for this request, KeyID who the caller is, RequestHash what was asked, as a SHA-256 in lower-case
	// hexadecimal. Where OnceKey is empty the act is done whatever was done before.
	KeyID       string
	OnceKey     string
	RequestHash string
	// Args are the other arguments of the function, by their names.
	Args map[string]any
}

// Written is what became of a write.
type Written struct {
	// Status is "done"; "replayed", when Answer is that of the first time; "other_request", when the OnceKey belongs to another
	// request; or "in_progress". Answer is empty for the last two.
	Status string          `json:"status"`
	Answer json.RawMessage `json:"answer"`
}

// Write does a write of the API in one statement: where it has a OnceKey, begin_request, the act, and finish_request, which keeps the
// answer in the transaction of the act. A dry run changes nothing and is not kept.
func (s *Store) Write(ctx context.Context, w Write) (Written, error) {
	act, known := writes[w.Function]
	if preview, other := dryRuns[w.Function]; w.DryRun && other {
		act = preview
	}
	if !known {
		return Written{}, fmt.Errorf("%s is no write", w.Function)
	}
	args := withArgs(w.Args, map[string]any{
		"workspace": w.Workspace, "operator": w.Operator, "reason": w.Reason, "dry_run": w.DryRun,
		"key_of_caller": w.KeyID, "once": w.OnceKey, "request_hash": w.RequestHash,
	})
	sql := `select jsonb_build_object('status', 'done', 'answer', ` + act + `)`
	if w.OnceKey != "" && !w.DryRun {
		sql = `select autopost.finish_request(@workspace, @key_of_caller::text::uuid, @once, @request_hash, b.begun, case when b.begun ->> 'status' = 'fresh' then ` + act + ` end)
			from autopost.begin_request(@workspace, @key_of_caller::text::uuid, @once, @request_hash) as b(begun)`
	}
	rows, err := named(ctx, s, sql, args)
	if err != nil {
		return Written{}, fmt.Errorf("%s ws=%s: %w", w.Function, w.Workspace, err)
	}
	var written Written
	if err := json.Unmarshal(rows[0].raw, &written); err != nil {
		return Written{}, fmt.Errorf("%s ws=%s: decode the answer: %w", w.Function, w.Workspace, err)
	}
	return written, nil
}

func withArgs(args, all map[string]any) map[string]any {
	maps.Copy(all, args)
	return all
}

// named runs a call whose arguments stand in it by their names, as @name. Objects go as JSON: through a pooler nobody knows that a
// parameter takes some.
func named(ctx context.Context, s *Store, sql string, args map[string]any) ([]answer, error) {
	byName := pgx.NamedArgs{}
	for name, value := range args {
		switch value.(type) {
		case nil, string, []string, bool, int, int64, json.RawMessage:
		default:
			raw, err := json.Marshal(value)
			if err != nil {
				return nil, fmt.Errorf("write %s: %w", name, err)
			}
			value = json.RawMessage(raw)
		}
		byName[name] = value
	}
	sql, inOrder, err := byName.RewriteQuery(ctx, nil, sql, nil)
	if err != nil {
		return nil, err
	}
	return query(ctx, s, sql, inOrder...)
}
