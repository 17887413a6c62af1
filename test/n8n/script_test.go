package n8n

import (
	"encoding/csv"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
	"autopost/internal/testing/posttest"
)

// caller makes one call of SQL and returns its rows by column.
type caller func(statement string, args ...any) []map[string]string

// columns returns the names of the columns of a statement of the script.
func columns(statement string) []string {
	list, _, _ := strings.Cut(strings.TrimPrefix(statement, "select "), " from ")
	return strings.Split(list, ", ")
}

// script makes the calls of a dispatcher in a workspace: posts arrive, are claimed, started and committed.
func script(t testing.TB, workspace string, call caller) {
	t.Helper()
	one := func(statement string, args ...any) string {
		rows := call(statement, args...)
		require.Len(t, rows, 1, statement)
		return rows[0][columns(statement)[0]]
	}
	posts := `[{"text": "comma, 'quote' \"double\" $1 {{ $json.x }} \\ back", "source_ref": "1"}, {"text": "comma, 'quote' \"double\" $1 {{ $json.x }} \\ back", "source_ref": "1"}, {"text": ""}, {"text": "второй"}]`
	require.Contains(t, one(`select guard from autopost.guard_ingress($1, $2, $3::int, $4::int) as guard`, workspace, posttest.Endpoint, len(posts), 4), `"admitted": true`)
	require.Contains(t, one(`select received from autopost.receive_push($1, $2, $3::jsonb) as received`, workspace, posttest.Endpoint, posts), `"rejected"`)
	outcomes := []string{
		`{"ok": true, "provider_message_id": "m-1", "sent_at": null, "raw": {"ids": ["m-1"]}}`,
		`{"ok": false, "error": {"category": "PERMANENT", "scope": "delivery", "code": "validation_failed", "known": true, "message": "no"}}`,
		`{"ok": false, "error": {"category": "TRANSIENT", "scope": "channel", "code": "tg_429", "known": true, "retry_after_ms": 3600000, "message": "wait, \"please\""}}`,
		`{"ok": false, "error": {"category": "TRANSIENT", "scope": "delivery", "code": "unknown_outcome", "known": false, "message": ""}}`,
	}
	for range len(outcomes) / 2 {
		claimed := call(`select delivery_id, claim_token, channel_id from autopost.claim_within($1, $2, $3::int, $4::jsonb)`, workspace, "script", 10, `[{"platform": "x", "room": 0}]`)
		require.Len(t, claimed, 2)
		for _, row := range claimed {
			require.Contains(t, one(`select start from autopost.start_call($1, $2::uuid, $3) as start`, workspace, row["delivery_id"], row["claim_token"]), `"applied": true`)
			committed := `select committed from autopost.commit_outcome_batch($1, $2::jsonb) as committed`
			items := fmt.Sprintf(`[{"delivery_id": %q, "claim_token": %q, "outcome": %s}]`, row["delivery_id"], row["claim_token"], outcomes[0])
			outcomes = outcomes[1:]
			require.Contains(t, one(committed, workspace, items), `"applied": true`)
			require.Contains(t, one(committed, workspace, items), `"repeated": true`)
		}
	}
	require.Contains(t, one(`select released from autopost.release_claims($1, $2::text[]) as released`, workspace, []string{"no such token"}), `"released": 0`)
	require.Contains(t, one(`select recovered from autopost.recover_sending_leases($1) as recovered`, workspace), `"recovered": 0`)
}

// left is what the script leaves in a workspace, without ids and times.
func left(db *pgtest.DB, workspace string) []string {
	return pgtest.Column[string](db, `
		select 'delivery ' || d.channel_id || ' ' || d.status || ' ' || d.attempt || ' ' || d.unknown_outcomes || ' ' || coalesce(d.provider_message_id, '-')
			|| ' ' || coalesce(d.last_error::text, '-') || ' ' || d.rendered_text from autopost.deliveries d where d.workspace_id = $1
		union all
		select 'event ' || coalesce(e.channel_id, '-') || ' ' || e.action || ' ' || coalesce(e.attempt::text, '-') || ' ' || coalesce(e.result, '-') || ' ' || coalesce(e.error ->> 'code', '-') || ' ' || count(*)
			from autopost.events e where e.workspace_id = $1 group by e.channel_id, e.action, e.attempt, e.result, e.error ->> 'code'
		union all
		select 'receipts ' || count(*) from autopost.ingress_receipts where workspace_id = $1
		union all
		select 'gate ' || g.channel_id || ' ' || g.inflight from autopost.channel_gates g where g.workspace_id = $1
		union all
		select 'channel ' || c.channel_id || ' ' || c.error_streak || ' ' || (c.paused_until is not null) || ' ' || (c.cooldown_until is not null) from autopost.channels c where c.workspace_id = $1
		order by 1`, workspace)
}

// prepareScript makes the workspace of a script.
func prepareScript(db *pgtest.DB, workspace string) {
	posttest.Workspace(db, workspace)
	posttest.Channel(db, workspace, "a")
	posttest.Channel(db, workspace, "b")
	db.Exec(`update autopost.channels set target_id = '@same_' || channel_id where workspace_id = $1`, workspace)
}

// byGo calls through the driver.
func byGo(session *pgtest.Session) caller {
	return func(statement string, args ...any) []map[string]string {
		var list []map[string]string
		names := columns(statement)
		quoted := "select " + strings.Join(names, "::text, ") + "::text from " + strings.SplitN(statement, " from ", 2)[1]
		for _, row := range session.Exec(quoted, args...) {
			fields := map[string]string{}
			for i, name := range names {
				fields[name] = fmt.Sprint(row[i])
			}
			list = append(list, fields)
		}
		return list
	}
}

// byPsql calls through psql, with the values as literals.
func byPsql(t testing.TB, address string) caller {
	return func(statement string, args ...any) []map[string]string {
		t.Helper()
		statement = parameter.ReplaceAllStringFunc(statement, func(place string) string {
			n, _ := strconv.Atoi(place[1:]) // digits
			text := fmt.Sprint(args[n-1])
			if list, ok := args[n-1].([]string); ok {
				text = `{"` + strings.Join(list, `","`) + `"}`
			}
			return "'" + strings.ReplaceAll(text, "'", "''") + "'"
		})
		cmd := exec.CommandContext(t.Context(), "psql", "-X", "-q", "--csv", "-v", "ON_ERROR_STOP=1", address)
		cmd.Stdin = strings.NewReader(statement + ";\n")
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		require.NoError(t, err, stderr.String())
		rows, err := csv.NewReader(strings.NewReader(string(out))).ReadAll()
		require.NoError(t, err)
		var list []map[string]string
		for _, row := range rows[1:] {
			fields := map[string]string{}
			for i, name := range rows[0] {
				fields[name] = row[i]
			}
			list = append(list, fields)
		}
		return list
	}
}

// The same calls leave the same rows with each client. make test-n8n adds n8n.
func TestPsqlAndGoLeaveTheSameRows(t *testing.T) {
	db := pgtest.New(t)
	db.Exec(`insert into autopost.role_workspaces (role_name, workspace_id) values ('autopost_caller', '*')`)
	prepareScript(db, "by-go")
	prepareScript(db, "by-psql")
	script(t, "by-go", byGo(db.Session("caller", "caller")))
	script(t, "by-psql", byPsql(t, db.URL("caller")))
	want := left(db, "by-go")
	require.Greater(t, len(want), 15)
	require.Equal(t, want, left(db, "by-psql"))
}
