package api

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/problem"
	"autopost/internal/testing/pgtest"
	"autopost/internal/testing/posttest"
	"autopost/test/harness"
)

// mark is in every text of the workspace rival, and in no id.
const mark = "zebra"

// world is a daemon with two similar workspaces: acme, whose keys the tests have, and rival. Both are paused, so that
// only the tests change something.
type world struct {
	*harness.Harness
	t   *testing.T
	url string
	// keys are acme's by their role.
	keys map[string]string
	// ids name one thing of each resource by workspace, then by resource or the name of a parameter.
	ids        map[string]map[string]string
	operations []operation
	document   []byte
}

func open(t *testing.T) *world {
	t.Helper()
	w := &world{Harness: harness.New(t), t: t, keys: map[string]string{}, ids: map[string]map[string]string{}}
	for _, workspace := range []string{"acme", "rival"} {
		w.populate(workspace)
	}
	for _, role := range []string{"viewer", "editor", "approver", "operator", "owner"} {
		w.keys[role] = "key-of-a-" + role
		w.Exec(`select autopost.create_api_key('acme', jsonb_build_object('name', 'test', 'role', $1::text), encode(sha256($2::bytea), 'hex'), 'ann', 'r')`, role, w.keys[role])
	}
	for workspace, ids := range w.ids {
		w.repeat(workspace, ids)
		for _, operation := range []string{"draft_id", "put-draft", "remove-draft", "submit-draft"} {
			ids[operation] = pgtest.Value[string](w.DB, `select autopost.put_draft($1, null, jsonb_build_object('payload', jsonb_build_object('text', $1 || $2)),
				'key:' || coalesce((select max(k.key_id::text) from autopost.api_keys k where k.workspace_id = $1 and k.role = 'owner'), 'none')) ->> 'draft_id'`, workspace, operation)
		}
	}
	w.url = w.Serve().URL
	for workspace, ids := range w.ids {
		ids["blob_ref"] = w.depict(workspace, picture+workspace)
	}
	w.describe()
	return w
}

// spares makes objects that an operation may remove.
func (w *world) spares(workspace, word string, ids map[string]string) {
	w.t.Helper()
	for _, kind := range []string{"channel", "webhook", "alert-target", "moderation-chat"} {
		ids["remove-"+kind] = "spare-" + workspace
	}
	ids["fetch-source"] = "polled-" + workspace
	posttest.Channel(w.DB, workspace, "spare-"+workspace)
	w.Exec(`select autopost.put_channel($1, 'spare-' || $1, '{"enabled": false}', 'ann', $2, false)`, workspace, word)
	w.Exec(`select autopost.put_webhook($1, 'spare-' || $1, jsonb_build_object('url', 'https://' || $2 || '.example', 'signing_ref', $2::text, 'enabled', false), 'ann', $2, false)`, workspace, word)
	w.Exec(`select autopost.put_alert_target($1, 'spare-' || $1, jsonb_build_object('kind', 'telegram', 'address', '-1003', 'auth_ref', $2::text, 'kinds', array['orphans']), 'ann', $3, false)`,
		workspace, ids["credentials"], word)
	w.Exec(`select autopost.put_moderation_chat($1, 'spare-' || $1, jsonb_build_object('auth_ref', $2::text, 'target_id', '-1004', 'enabled', false), 'ann', $3, false)`,
		workspace, ids["credentials"], word)
	w.Exec(`select autopost.put_source($1, 'polled-' || $1, '{"kind": "rss", "config_json": {"url": "http://127.0.0.1:1/"}}', 'ann', $2, false)`, workspace, word)
}

// populate makes a workspace with a row of every resource.
func (w *world) populate(workspace string) {
	w.t.Helper()
	word := map[string]string{"acme": "horse", "rival": mark}[workspace]
	posttest.Workspace(w.DB, workspace)
	w.Exec(`update autopost.workspaces set name = $2 where workspace_id = $1`, workspace, word)
	w.Exec(`insert into autopost.discovered_chats (workspace_id, platform, auth_ref, target_id, title, first_seen, last_seen) values ($1, 'telegram', 'bot', '-1', $2, now(), now())`, workspace, word)
	w.Exec(`update autopost.workspace_endpoints set meta = jsonb_build_object('note', $2::text) where workspace_id = $1`, workspace, word)
	ids := map[string]string{"workspaces": workspace, "channels": "c-" + workspace, "endpoints": posttest.Endpoint, "sources": "s-" + workspace, "templates": "t-" + workspace,
		"credentials": "b-" + workspace, "settings": "max_attempts", "webhooks": "w-" + workspace, "platform": "telegram", "rate_group": "b-" + workspace, "max": "m-" + workspace}
	posttest.Channel(w.DB, workspace, ids["channels"], posttest.Group(ids["rate_group"]), posttest.MaxParallel(10))
	w.Exec(`update autopost.channels set title = $2, tags = array[$2::text] where workspace_id = $1`, workspace, word)
	w.Exec(`insert into autopost.platform_limits (workspace_id, platform, rate_group, rate_rps) values ($1, 'telegram', $2, 25)`, workspace, ids["rate_group"])
	w.Exec(`insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref) values ($1, $2, 'telegram', 'env:' || $3), ($1, 'bot-2', 'telegram', 'env:' || $3)`, workspace, ids["credentials"], word)
	// Nothing is read for the webhook, and nothing sent: the time for that is far away.
	w.Exec(`update autopost.settings set value = '1000000000' where key = 'webhook_poll_ms'`)
	w.Exec(`select autopost.put_webhook($1, $3, jsonb_build_object('url', 'https://' || $2 || '.example', 'signing_ref', $2::text), 'ann', $2, false)`, workspace, word, ids["webhooks"])
	w.Exec(`update autopost.result_webhooks set next_send_at = '2999-01-01' where workspace_id = $1`, workspace)
	w.Exec(`select autopost.test_webhook($1, $3, 'ann', $2)`, workspace, word, ids["webhooks"])
	w.Exec(`insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref) values ($1, $2, 'max', 'env:TEST_MAX_TOKEN')`, workspace, ids["max"])
	ids["set-credential"], ids["link-credential"], ids["remove-credential"] = "k-"+workspace, "l-"+workspace, "r-"+workspace
	ids["get-credential"], ids["check-credential"], ids["discover-chats"] = ids["credentials"], ids["max"], ids["max"]
	w.Exec(`insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref) values ($1, 'k-' || $1, 'webhook', 'env:NONE'), ($1, 'l-' || $1, 'youtube', 'env:NONE'),
		($1, 'r-' || $1, 'telegram', 'env:NONE')`, workspace)
	w.invite(workspace, word, ids)
	ids["retry-policies"] = "x/" + workspace
	w.Exec(`select autopost.put_retry_policy($1, 'x', $1, '{"max_attempts": 2}', 'ann', $2, false)`, workspace, word)
	ids["quotas"], ids["budgets"] = "channel:c-"+workspace+"/3600", ids["max"]
	w.Exec(`insert into autopost.quotas (workspace_id, channel_id, window_seconds, max_sends) values ($1, $2, 3600, 1000)`, workspace, ids["channels"])
	w.Exec(`insert into autopost.budgets (workspace_id, auth_ref, month_micros) values ($1, $2, 1000000)`, workspace, ids["max"])
	w.Exec(`insert into autopost.pull_sources (workspace_id, source_id, kind, config_json, enabled) values ($1, $2, 'rss', jsonb_build_object('url', 'https://' || $3 || '.example'), false)`,
		workspace, ids["sources"], word)
	for _, body := range []string{" {title}", " {title}!", " {title}?"} {
		w.Exec(`select autopost.put_template($1, $2, 'telegram', jsonb_build_object('body', $3 || $4), 'ann', $3)`, workspace, ids["templates"], word, body)
	}
	w.Exec(`select autopost.put_alert_target($1, 'a-' || $1, jsonb_build_object('kind', 'telegram', 'address', '-1001', 'auth_ref', $2::text, 'kinds', array['orphans']), 'ann', $3, false)`,
		workspace, ids["credentials"], word)
	w.Exec(`select autopost.put_moderation_chat($1, 'm-' || $1, jsonb_build_object('auth_ref', $2::text, 'target_id', '-1002', 'enabled', false), 'ann', $3, false)`,
		workspace, ids["credentials"], word)
	ids["moderation-chats"] = "m-" + workspace
	w.converse(workspace, word, ids)
	w.Exec(`select autopost.raise_alert($1, 'auth_lost', 'credential:' || $2, jsonb_build_object('message', $3::text), '{}')`, workspace, ids["credentials"], word)
	ids["alert-targets"] = "a-" + workspace
	w.spares(workspace, word, ids)
	ids["alerts"] = pgtest.Value[string](w.DB, `select alert_id::text from autopost.alerts where workspace_id = $1`, workspace)
	w.hold(workspace, ids)
	for _, status := range []autopost.Status{autopost.StatusDead, autopost.StatusFailedPermanent, autopost.StatusRetry, autopost.StatusSent, autopost.StatusQueued} {
		ids["delivery_id "+string(status)] = posttest.Delivery(w.DB, workspace, ids["channels"], status)
	}
	answer := w.JSON(`select autopost.submit_post($1, null, 'api', jsonb_build_object('text', $2::text, 'source_ref', $2::text))`, workspace, word)
	ids["message_id"], ids["run_id"] = answer["message_id"].(string), answer["run_id"].(string)
	ids["delivery_id"] = answer["deliveries"].([]any)[0].(map[string]any)["delivery_id"].(string)
	w.Exec(`update autopost.deliveries set rendered_text = $2 where workspace_id = $1 and status = 'dead'`, workspace, word)
	ids["message_id sent"] = pgtest.Value[string](w.DB, `select message_id::text from autopost.deliveries where delivery_id = $1::uuid`, ids["delivery_id sent"])
	ids["submission_id"] = pgtest.Value[string](w.DB, `insert into autopost.submissions (workspace_id, submission_id, endpoint_id, kind, status, raw_payload, run_id, trace_id)
		values ($1, autopost.new_id(), $3, 'push', 'failed', jsonb_build_object('text', $2::text, 'media', '[{"type": "image", "url": "https://e.x/1.png"}]'::jsonb), $4::uuid, $4::uuid)
		returning submission_id::text`, workspace, word, posttest.Endpoint, ids["run_id"])
	for _, decision := range []string{"approve", "reject", "edit"} {
		ids["submission_id "+decision] = pgtest.Value[string](w.DB, `insert into autopost.submissions (workspace_id, submission_id, endpoint_id, kind, status, raw_payload, run_id, trace_id, moderated, plan, digest)
			values ($1, autopost.new_id(), $3, 'push', 'pending', jsonb_build_object('text', $2::text || ' ' || $5), $4::uuid, autopost.new_id(), true, '{"media": [], "renderings": []}', repeat('0', 64))
			returning submission_id::text`, workspace, word, posttest.Endpoint, ids["run_id"], decision)
	}
	// A post that was sent, and that is to be taken down next week.
	ids["act_id"] = pgtest.Value[string](w.DB, `select autopost.request_acts($1, 'delete', null, array[$2]::uuid[], null, now() + interval '7 days', 'ann', $3, false)
		#>> '{results,0,act_id}'`, workspace, ids["delivery_id sent"], word)
	ids["key_id"] = pgtest.Value[string](w.DB, `select autopost.create_api_key($1, jsonb_build_object('name', $2::text, 'role', 'viewer'), encode(sha256($2::bytea), 'hex'), 'ann', $2) ->> 'id'`,
		workspace, word)
	ids["events"] = pgtest.Value[string](w.DB, `insert into autopost.events (workspace_id, id, ts, action, result, payload_ref)
		values ($1, autopost.new_id(), now(), 'failed_permanent', 'error', 'raw/20260601/' || gen_random_uuid()) returning id::text`, workspace)
	ids["event-types"] = "offer." + workspace
	w.Exec(`select autopost.put_template($1, 'offer', '*', jsonb_build_object('body', $2 || ' {title}'), 'ann', $2)`, workspace, word)
	w.Exec(`select autopost.put_event_type($1, $2, '{"template_id": "offer", "moderated": true}', 'ann', $3, false)`, workspace, ids["event-types"], word)
	ids["avatars"] = "avatar-" + workspace
	w.Exec(`select autopost.put_avatar($1, $2, jsonb_build_object('name', $3::text), 'ann', $3, false)`, workspace, ids["avatars"], word)
	for _, operation := range []string{"approve-x-post", "reject-x-post", "retry-x-post", "approve-submission", "reject-submission", "edit-submission"} {
		ids[operation] = w.JSON(`select autopost.receive_event($1, $2, jsonb_build_object('event', $3::text, 'payload', jsonb_build_object('title', $4 || $5)))`,
			workspace, posttest.Endpoint, ids["event-types"], word, operation)["submission_id"].(string)
	}
	w.Exec(`update autopost.submissions set status = 'failed' where submission_id = $1::uuid`, ids["retry-x-post"])
	w.fileJobs(workspace, word, ids)
	w.Exec(`update autopost.workspaces set status = 'paused' where workspace_id = $1`, workspace)
	w.ids[workspace] = ids
}

// converse makes a rule of the bot with two versions, and a conversation that it answered.
func (w *world) converse(workspace, word string, ids map[string]string) {
	w.t.Helper()
	ids["bot"], ids["provider"], ids["chat_id"] = "r-"+workspace, "max", map[string]string{"acme": "4711", "rival": "4712"}[workspace]
	for _, enabled := range []bool{true, false} {
		w.Exec(`select autopost.put_bot_rule($1, $2, jsonb_build_object('enabled', $4::boolean, 'keywords', array[$3::text], 'response_template', $3 || ' ' || $4::text), 'ann', $3, false)`,
			workspace, ids["bot"], word, enabled)
	}
	w.Exec(`select autopost.bot_take($1, 'max', $2, jsonb_build_object('update_type', 'message_created', 'timestamp', 1795000000000, 'message', jsonb_build_object(
		'recipient', jsonb_build_object('chat_id', $3::text::bigint, 'chat_type', 'dialog'), 'body', jsonb_build_object('mid', 'mid.1', 'text', $4::text), 'sender', '{"user_id": 7, "is_bot": false}'::jsonb)))`,
		workspace, ids["max"], ids["chat_id"], word)
}

// invite makes people: one with a role, and open invitations.
func (w *world) invite(workspace, word string, ids map[string]string) {
	w.t.Helper()
	for _, name := range []string{"user_id", "put-user"} {
		ids[name] = w.JSON(`select autopost.put_user(null, jsonb_build_object('email', $1 || '@' || $2 || '.example', 'name', 'A person'), 'ann', 'new', false)`, name, word)["user_id"].(string)
		w.Exec(`select autopost.put_membership($1, $2::uuid, 'editor', 'ann', $3, false)`, workspace, ids[name], word)
	}
	for _, name := range []string{"invitation_id", "remove-invitation"} {
		ids[name] = w.JSON(`select autopost.invite_user($1, jsonb_build_object('email', $2 || '@' || $3 || '.example', 'role', 'viewer'), encode(sha256(($1 || $2)::bytea), 'hex'), 'ann', $3)`,
			workspace, name, word)["id"].(string)
	}
	ids["session_id"] = ids["user_id"]
}

// depict adds a picture to a workspace and returns its blob_ref.
func (w *world) depict(workspace, content string) string {
	w.t.Helper()
	r := w.ask(call{method: http.MethodPost, path: "/api/v1/media?kind=image", key: w.key(workspace, "--role", "editor"), body: content, header: map[string]string{"Content-Type": "image/png"}})
	require.Equal(w.t, 201, r.status, r.raw)
	return r.body["blob_ref"].(string)
}

// hold makes a delivery with an unknown outcome that waits for an operator.
func (w *world) hold(workspace string, ids map[string]string) {
	w.t.Helper()
	posttest.Channel(w.DB, workspace, "held", posttest.Group("held"))
	w.Exec(`update autopost.channels set on_unknown = 'hold' where workspace_id = $1 and channel_id = 'held'`, workspace)
	id := posttest.Delivery(w.DB, workspace, "held", autopost.StatusSending)
	w.Exec(`select autopost.start_call(d.workspace_id, d.delivery_id, d.claim_token) from autopost.deliveries d where d.delivery_id = $1::uuid`, id)
	w.Exec(`select autopost.commit_outcome(d.workspace_id, d.delivery_id, d.claim_token, '{"ok": false, "error": {"category": "TRANSIENT", "code": "timeout", "known": false}}')
		from autopost.deliveries d where d.delivery_id = $1::uuid`, id)
	ids["delivery_id held"] = id
}

// repeat makes posts that repeat: one for reads, one to remove, and expected occurrences.
func (w *world) repeat(workspace string, ids map[string]string) {
	w.t.Helper()
	for _, name := range []string{"recurrence_id", "remove-recurrence"} {
		ids[name] = w.JSON(`select autopost.put_recurrence($1, null, jsonb_build_object('endpoint_id', $2::text, 'rule', 'FREQ=DAILY', 'starts_at', '2999-01-01T10:00',
			'payloads', jsonb_build_array(jsonb_build_object('text', $3::text))), 'ann', $3, false)`, workspace, posttest.Endpoint, map[string]string{"acme": "horse", "rival": mark}[workspace])["recurrence_id"].(string)
	}
	for _, name := range []string{"occurrence_id", "skip-occurrence"} {
		ids[name] = pgtest.Value[string](w.DB, `insert into autopost.occurrences (workspace_id, occurrence_id, recurrence_id, local_at, at, updated_at)
			select $1, autopost.new_id(), $2::uuid, t, t at time zone 'UTC', now() from (select '2999-01-01'::timestamp + length($3) * interval '1 day') x (t) returning occurrence_id::text`,
			workspace, ids["recurrence_id"], name)
	}
}

// key makes an API key.
func (w *world) key(workspace string, flags ...string) string {
	w.t.Helper()
	result := w.Run(nil, append([]string{"apikey", "add", "--workspace", workspace, "--name", "test", "--json"}, flags...)...)
	require.Zero(w.t, result.Code, result.Stderr)
	var made struct{ ID, Key string }
	require.NoError(w.t, json.Unmarshal([]byte(result.Stdout), &made))
	return made.Key
}

// call is a request.
type call struct {
	method, path, key, body string
	header                  map[string]string
}

// reply is an answer.
type reply struct {
	status int
	header http.Header
	raw    string
	body   map[string]any
}

var client = &http.Client{Timeout: 40 * time.Second}

// try sends a request; it may be called from any goroutine.
func (w *world) try(c call) (reply, error) {
	request, err := http.NewRequestWithContext(context.WithoutCancel(w.t.Context()), c.method, w.url+c.path, strings.NewReader(c.body))
	if err != nil {
		return reply{}, err
	}
	request.Header.Set("Authorization", "Bearer "+c.key)
	if c.body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for name, value := range c.header {
		request.Header.Set(name, value)
	}
	response, err := client.Do(request)
	if err != nil {
		return reply{}, err
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	r := reply{status: response.StatusCode, header: response.Header, raw: string(raw)}
	if json.Unmarshal(raw, &r.body) != nil {
		r.body = nil
	}
	if err == nil && r.status >= http.StatusBadRequest {
		err = r.catalogued()
	}
	return r, err
}

// catalogued returns an error unless a refusal is a problem of the catalogue with the status and title of its type.
func (r reply) catalogued() error {
	kind, known := problem.Of(fmt.Sprint(r.body["type"]))
	switch {
	case r.header.Get("Content-Type") != "application/problem+json":
		return fmt.Errorf("%d has the content type %s", r.status, r.header.Get("Content-Type"))
	case !known || kind.Status != r.status || r.body["title"] != kind.Title:
		return fmt.Errorf("%d is not in the catalogue of problems: %s", r.status, r.raw)
	}
	return nil
}

// ask is try for a request whose status must be in the OpenAPI document.
func (w *world) ask(c call) reply {
	w.t.Helper()
	r, err := w.try(c)
	require.NoError(w.t, err)
	at, _, _ := strings.Cut(c.path, "?")
	for _, o := range w.operations {
		if o.Method == c.method && o.has(at) {
			require.Contains(w.t, o.Responses, itoa(r.status), "%s: %s", o.ID, r.raw)
		}
	}
	return r
}

// engines are columns that the daemon changes: the use of keys and the notices to alert targets.
var engines = map[string][]string{
	"api_keys":      {"last_used_at"},
	"alert_targets": {"told_at", "next_try_at", "failures", "last_error", "health_next_at"},
}

// fingerprint returns all rows of a workspace, without the columns that the daemon changes.
func (w *world) fingerprint(workspace string) map[string]string {
	w.t.Helper()
	found := map[string]string{}
	for _, table := range pgtest.Column[string](w.DB, `
		select c.relname::text from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'workspace_id' and not a.attisdropped
		where c.relnamespace = 'autopost'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition and c.relname not in ('alerts', 'alert_messages', 'alert_notices')`) {
		found[table] = pgtest.Value[string](w.DB, `select coalesce(md5(string_agg(x.held::text, '|' order by x.held::text)), '')
			from (select x.workspace_id, to_jsonb(x) - $2::text[] as held from autopost.`+table+` x where x.workspace_id = $1) x`, workspace, append([]string{}, engines[table]...))
	}
	return found
}

// problem requires a problem with this status and returns the fields of its errors.
func (r reply) problem(t *testing.T, status int) []string {
	t.Helper()
	require.Equal(t, status, r.status, r.raw)
	require.Equal(t, "application/problem+json", r.header.Get("Content-Type"))
	require.EqualValues(t, status, r.body["status"])
	require.NotEmpty(t, r.body["detail"])
	require.Subset(t, []string{"type", "title", "status", "detail", "reason", "errors"}, slices.Collect(maps.Keys(r.body)))
	var fields []string
	faults, _ := r.body["errors"].([]any)
	for _, fault := range faults {
		f := fault.(map[string]any)
		require.NotEmpty(t, f["field"], r.raw)
		require.NotEmpty(t, f["reason"], r.raw)
		require.NotEmpty(t, f["remedy"], r.raw)
		fields = append(fields, f["field"].(string))
	}
	return fields
}
