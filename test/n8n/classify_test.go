//go:build n8n

package n8n

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// reader runs the code of a Code node in node, outside n8n, with one answer for one delivery.
const reader = `
const { code, answers } = JSON.parse(require('fs').readFileSync(0, 'utf8'));
const plan = () => ({ json: { delivery: { delivery_id: 'd' }, call: { step: 'text', items: [] }, meta: { steps: [{ step: 'text' }] }, done: {} } });
const run = new Function('$input', '$', code);
console.log(JSON.stringify(answers.map((json) => run({ all: () => [{ json }] }, () => ({ itemMatching: plan }))[0].json)));`

// classified runs "Read the answers" of an adapter and returns "ID" or "CATEGORY scope code known wait" of each answer.
func classified(t *testing.T, adapter string, answers []any) []string {
	t.Helper()
	var code string
	for _, n := range parse(t, exports(t)[adapter+".json"]).Nodes {
		if n.Name == "Read the answers" {
			code = n.text("jsCode")
		}
	}
	input, err := json.Marshal(map[string]any{"code": code, "answers": answers})
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), filepath.Join(os.Getenv("AUTOPOST_N8N"), "node24"), "-e", reader)
	cmd.Stdin = strings.NewReader(string(input))
	out, err := cmd.Output()
	require.NoError(t, err)
	var states []struct {
		Done    map[string][]string
		Outcome *struct {
			Error struct {
				Category, Scope, Code string
				Known                 bool
				RetryAfterMS          int `json:"retry_after_ms"`
			}
		}
	}
	require.NoError(t, json.Unmarshal(out, &states), "%s", out)
	var list []string
	for _, s := range states {
		if s.Outcome == nil {
			list = append(list, s.Done["text"][0])
			continue
		}
		e := s.Outcome.Error
		raw, err := json.Marshal([]any{e.Category, e.Scope, e.Code, e.Known, e.RetryAfterMS})
		require.NoError(t, err)
		list = append(list, strings.NewReplacer(`"`, "", ",", " ", "[", "", "]", "").Replace(string(raw)))
	}
	return list
}

// The adapters classify the answers of the fact sheets as those of the daemon do.
func TestAdaptersClassifyAnswers(t *testing.T) {
	check := func(adapter string, cases [][2]any) {
		var answers []any
		var want []string
		for _, c := range cases {
			answers, want = append(answers, c[0]), append(want, c[1].(string))
		}
		require.Equal(t, want, classified(t, adapter, answers), adapter)
	}
	text := func(s string) any { return map[string]any{"error": s} }
	check("adapter_telegram_send", [][2]any{
		{map[string]any{"ok": true, "result": map[string]any{"message_id": 7, "date": 1795000000}}, "7"},
		{map[string]any{"ok": true, "result": map[string]any{"message_id": 0}}, "scheduled-d-text-0"},
		{map[string]any{"ok": true}, "TRANSIENT delivery unknown_outcome false 0"},
		{text("Too Many Requests: retry after 35"), "TRANSIENT channel tg_429 true 35000"},
		{text("Forbidden: bot was kicked from the channel chat"), "PERMANENT channel tg_forbidden true 0"},
		{text("Unauthorized"), "PERMANENT channel tg_unauthorized true 0"},
		{text("Not Found"), "PERMANENT channel tg_bad_token_or_method true 0"},
		{text("Conflict: terminated by other getUpdates request"), "PERMANENT platform tg_conflict true 0"},
		{text("Bad Request: chat not found"), "PERMANENT channel tg_chat_not_found true 0"},
		{text("Bad Request: need administrator rights in the channel chat"), "PERMANENT channel tg_no_rights true 0"},
		{text("Bad Request: message thread not found"), "PERMANENT channel tg_thread_missing true 0"},
		{text("Bad Request: can't parse entities: chat not found"), "PERMANENT delivery validation_failed true 0"},
		{text("Bad Request: message caption is too long"), "PERMANENT delivery message_too_long true 0"},
		{text("Bad Request: PHOTO_INVALID_DIMENSIONS"), "PERMANENT delivery media_rejected true 0"},
		{text("Bad Request: wrong file identifier/HTTP URL specified"), "TRANSIENT delivery media_expired true 0"},
		{text("Bad Request: group send failed"), "TRANSIENT channel tg_send_failed true 10000"},
		{text(`Bad Request: failed to send message #2 with the error message "Too Many Requests: retry after 9"`), "TRANSIENT channel unknown_outcome false 9000"},
		{text("Internal Server Error: sent message was immediately deleted"), "PERMANENT delivery tg_sent_deleted true 0"},
		{text("Internal Server Error"), "TRANSIENT platform tg_5xx true 0"},
		{text("<html><head><title>502 Bad Gateway</title></head></html>"), "TRANSIENT delivery unknown_outcome false 0"},
		{text("The connection to the server was closed unexpectedly, perhaps it is offline."), "TRANSIENT delivery unknown_outcome false 0"},
		{text("The service refused the connection - perhaps it is offline"), "TRANSIENT platform net_connect true 0"},
		{text("self-signed certificate in certificate chain"), "PERMANENT platform tls_untrusted true 0"},
		{map[string]any{}, "TRANSIENT delivery unknown_outcome false 0"},
	})
	status := func(code int, body string, header ...string) any {
		headers := map[string]any{}
		for i := 0; i+1 < len(header); i += 2 {
			headers[header[i]] = header[i+1]
		}
		return map[string]any{"statusCode": code, "data": body, "headers": headers}
	}
	socket := func(code string) any { return map[string]any{"error": map[string]any{"code": code}} }
	check("adapter_max_send", [][2]any{
		{status(200, `{"message": {"timestamp": 1795000000123, "body": {"mid": "mid.1", "seq": 116327994376978687}}}`), "mid.1"},
		{status(200, `{"message": {}}`), "TRANSIENT delivery unknown_outcome false 0"},
		{status(200, `{"success": false, "message": "chat.denied"}`), "PERMANENT channel max_chat_denied true 0"},
		{status(200, `{"success": false, "message": "no"}`), "PERMANENT delivery max_simple_error true 0"},
		{status(429, `{"code": "too.many.requests", "message": "slow down"}`, "retry-after", "4"), "TRANSIENT channel max_429 true 4000"},
		{status(401, `{"code": "verify.token", "message": "Invalid access_token"}`), "PERMANENT channel max_unauthorized true 0"},
		{status(403, `{"code": "chat.denied", "message": "no"}`), "PERMANENT channel max_chat_denied true 0"},
		{status(403, `{"code": "account.blocked", "message": "no"}`), "TRANSIENT platform max_account_blocked true 600000"},
		{status(404, `{"code": "not.found", "message": "no chat"}`), "PERMANENT channel max_not_found true 0"},
		{status(400, `{"code": "attachment.not.ready", "message": "later"}`), "TRANSIENT delivery attachment.not.ready true 1000"},
		{status(400, `{"code": "proto.payload", "message": "Field 'text' size (4001) must be at most 4000"}`), "PERMANENT delivery message_too_long true 0"},
		{status(400, `{"code": "proto.payload", "message": "Invalid photo token"}`), "TRANSIENT delivery media_expired true 0"},
		{status(503, `{"code": "service.unavailable", "message": "x"}`), "TRANSIENT platform max_5xx true 0"},
		{status(502, `<html>`), "TRANSIENT delivery unknown_outcome false 0"},
		{status(404, `<html>`), "TRANSIENT platform max_gateway true 0"},
		{socket("ECONNREFUSED"), "TRANSIENT platform net_connect true 0"},
		{socket("ECONNRESET"), "TRANSIENT delivery unknown_outcome false 0"},
		{socket("ECONNABORTED"), "TRANSIENT delivery unknown_outcome false 0"},
		{socket("UNABLE_TO_VERIFY_LEAF_SIGNATURE"), "PERMANENT platform tls_untrusted true 0"},
	})
}
