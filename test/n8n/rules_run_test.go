package n8n

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
)

// shipped are the workflows that outsiders know by name.
var shipped = []string{
	"01_ingest.json", "02_dispatcher.json", "03_monitor.json", "11_bot_ingest.json", "12_bot_engine.json", "13_bot_monitor.json", "99_errors.json", "adapter_max_send.json", "adapter_telegram_send.json",
}

func TestTheExportsKeepTheRules(t *testing.T) {
	files := exports(t)
	require.Equal(t, shipped, slices.Sorted(maps.Keys(files)))
	require.Empty(t, strings.Join(lint(files), "\n"))
}

// Each planted violation must be found in an export that has no other one.
func TestEveryRuleFindsItsViolation(t *testing.T) {
	plants := []struct{ file, old, new, finding string }{
		{"01_ingest.json", `  "name": "01_ingest"`, `   "name": "01_ingest"`, "is not indented"},
		{"01_ingest.json", `"isArchived": false`, `"isArchived": false,` + "\n" + `  "versionId": "1"`, "has the key"},
		{"01_ingest.json", `"name": "01_ingest"`, `"name": "ingest"`, "the name differs"},
		{"01_ingest.json", `"id": "autopostIngest01"`, `"id": "autopostDispatch"`, "has the id of"},
		{"01_ingest.json", `"executionOrder": "v1"`, `"executionOrder": "v0"`, "executionOrder"},
		{"01_ingest.json", `"errorWorkflow": "autopostErrors01"`, `"errorWorkflow": "nowhere"`, "is in no file"},
		{"01_ingest.json", `"type": "n8n-nodes-base.splitOut"`, `"type": "n8n-nodes-base.wait"`, "the type wait is not allowed"},
		{"01_ingest.json", `"typeVersion": 2.6`, `"typeVersion": 2.7`, "is newer than"},
		{"01_ingest.json", `"name": "Answer",`, `"name": "Code1",`, "says what it does"},
		{"01_ingest.json", `from autopost.receive_push($1, $2, $3::jsonb) as received`, `from autopost.receive_push('acme', $2, $3::jsonb) as received`, "must be one call"},
		{"01_ingest.json", `"select received from autopost.receive_push($1, $2, $3::jsonb) as received"`, `"update autopost.deliveries set status = 'sent'"`, "must be one call"},
		{"01_ingest.json", `"select kept from autopost.set_pull_cursor($1, $2, $3::jsonb) as kept"`, `"select kept from autopost.set_pull_cursor($1, $2, $3::jsonb) as kept, autopost.set_pull_cursor($1, $2, $3::jsonb) as twice"`, "must be one call"},
		{"01_ingest.json", `"select kept from autopost.set_pull_cursor($1, $2, $3::jsonb) as kept"`, `"select kept from autopost.set_pull_cursor($1, $2, $3::jsonb) as kept where kept is not null"`, "must be one call"},
		{"01_ingest.json", `"select kept from autopost.set_pull_cursor($1, $2, $3::jsonb) as kept"`, `"select to_jsonb(kept) from autopost.set_pull_cursor($1, $2, $3::jsonb) as kept"`, "must be one call"},
		{"01_ingest.json", `"select kept from autopost.set_pull_cursor($1, $2, $3::jsonb) as kept"`, `"select kept from autopost.set_pull_cursor($1, $2, (select $3::jsonb)) as kept"`, "must be one call"},
		{"01_ingest.json", `"select kept from autopost.set_pull_cursor($1, $2, $3::jsonb) as kept"`, `"select kept from autopost.set_pull_cursor($1, gen_random_uuid()::text, $3::jsonb) as kept"`, "must be one call"},
		{"01_ingest.json", `"select kept from autopost.set_pull_cursor($1, $2, $3::jsonb) as kept"`, `"select autopost.set_pull_cursor($1, $2, $3::jsonb) as kept, 1 as one"`, "must be one call"},
		{"01_ingest.json", `"={{ [$json.workspace_id, $json.source_id, JSON.stringify($json.cursor)] }}"`, `"={{ $json.workspace_id }},{{ $json.source_id }}"`, "must be one expression"},
		{"01_ingest.json", `[$json.workspace_id, $json.source_id, JSON.stringify($json.cursor)]`, `[$json.workspace_id, $json.source_id]`, "passes 2 values for 3"},
		{"01_ingest.json", `"queryBatching": "independently"`, `"queryBatching": "single"`, "queryBatching"},
		{"01_ingest.json", `$('Find the endpoint')`, `$('Resolve')`, "unknown node"},
		{"01_ingest.json", `"responseMode": "responseNode"`, `"responseMode": "onReceived"`, "answers by a node"},
		{"01_ingest.json", `"followRedirects": false`, `"followRedirects": true`, "no redirects"},
		{"01_ingest.json", `const answer = (status`, `const environment = $env; const answer = (status`, "the environment"},
		{"01_ingest.json", `const answer = (status`, `const crypto = require('crypto'); const answer = (status`, "what a Code node has"},
		{"02_dispatcher.json", `"alwaysOutputData": true`, `"alwaysOutputData": false`, "may answer nothing"},
		{"02_dispatcher.json", `"fallbackOutput": "extra"`, `"fallbackOutput": "none"`, "fallback output"},
		{"02_dispatcher.json", `"numberInputs": 4`, `"numberInputs": 2`, "inputs connected"},
		{"02_dispatcher.json", `"mode": "once"`, `"mode": "each"`, "all items at once"},
		{"02_dispatcher.json", `"rendered_text": "={{ $json.rendered_text }}",`, ``, "which takes"},
		{"02_dispatcher.json", `"value": "autopostSendTg01"`, `"value": "nowhere"`, "is in no file"},
		{"02_dispatcher.json", `"onError": "continueRegularOutput"`, `"retryOnFail": true`, "retries belong to SQL"},
		{"adapter_telegram_send.json", `"appendAttribution": false`, `"appendAttribution": true`, "advertisement"},
		{"adapter_telegram_send.json", `"inputSource": "workflowInputs"`, `"inputSource": "passthrough"`, "typed inputs"},
		{"adapter_max_send.json", `"notes": "Makes each call once`, `"remark": "Makes each call once`, "needs a note"},
		{"adapter_max_send.json", `https://platform-api2.max.ru/messages?`, `https://platform-api2.max.ru/messages?access_token=x&`, "a secret in its address"},
		{"adapter_max_send.json", `// MAX's answer`, `// 123456789:AAEsimulatorsAcceptAnyWellFormedToken`, "looks like a secret"},
	}
	for _, p := range plants {
		files := exports(t)
		require.Contains(t, string(files[p.file]), p.old)
		files[p.file] = []byte(strings.Replace(string(files[p.file]), p.old, p.new, 1))
		require.Contains(t, strings.Join(lint(files), "\n"), p.finding, "%s: %s", p.file, p.new)
	}
}

// statements returns the statements of an export by their nodes.
func statements(t *testing.T, file string, text []byte) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, n := range parse(t, text).Nodes {
		if n.kind() == "postgres" {
			found[file+" "+n.Name] = n.text("query")
		}
	}
	return found
}

// refusal prepares a statement and plans it with empty arguments, which also checks the rights of the role. It
// returns the error, or "".
func refusal(session *pgtest.Session, statement string) string {
	places := 0
	for _, m := range parameter.FindAllStringSubmatch(statement, -1) {
		place, _ := strconv.Atoi(m[1]) // digits
		places = max(places, place)
	}
	arguments := ""
	if places > 0 {
		arguments = "(" + strings.TrimSuffix(strings.Repeat("null, ", places), ", ") + ")"
	}
	if err := session.Start("prepare planned as " + statement).Err(); err != nil {
		return err.Error()
	}
	defer session.Exec("deallocate planned")
	if err := session.Start("explain execute planned" + arguments).Err(); err != nil {
		return err.Error()
	}
	return ""
}

// The database checks the name, the types and the rights of every call.
func TestTheCallerMayMakeEveryCall(t *testing.T) {
	db := pgtest.New(t)
	session := db.Session("caller", "caller")
	calls := 0
	for file, text := range exports(t) {
		for at, statement := range statements(t, file, text) {
			calls++
			require.Empty(t, refusal(session, statement), at)
		}
	}
	require.Greater(t, calls, 15)
	for statement, want := range map[string]string{
		"select start from autopost.start_calls($1, $2::uuid, $3) as start":       "does not exist",
		"select start from autopost.start_call($1, $2::uuid, $3::jsonb) as start": "does not exist",
		"select nothing from autopost.start_call($1, $2::uuid, $3) as start":      "does not exist",
		"select source from autopost.get_credential($1, $2) as source":            "permission denied",
		"select workspace_id, secret from autopost.claim_within($1, $2, $3, $4)":  "does not exist",
	} {
		require.Contains(t, refusal(session, statement), want, statement)
	}
}
