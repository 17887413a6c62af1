package races_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
	"autopost/internal/testing/posttest"
)

// life is a workspace that an operator prepared, and a session that may call the functions and nothing else.
func life(t *testing.T) (*pgtest.DB, *pgtest.Session) {
	t.Helper()
	db := pgtest.New(t)
	posttest.Workspace(db, "w")
	posttest.Workspace(db, "other")
	posttest.Channel(db, "w", "a")
	posttest.Channel(db, "w", "b")
	db.Exec(`insert into autopost.role_workspaces (role_name, workspace_id) values ('autopost_caller', 'w')`)
	return db, db.Session("caller", "caller")
}

// one is the single JSON object that a call answers.
func one(t *testing.T, s *pgtest.Session, sql string, args ...any) map[string]any {
	t.Helper()
	rows := s.Exec(sql, args...)
	require.Len(t, rows, 1)
	answer, ok := rows[0][0].(map[string]any)
	require.True(t, ok, "%v", rows)
	return answer
}

// A post from its arrival to its trace, its trouble and an operator's help, by calls of functions alone.
func TestCallerDrivesTheWholeLifeOfAPost(t *testing.T) {
	t.Parallel()
	_, caller := life(t)
	require.Equal(t, true, one(t, caller, `select autopost.guard_ingress('w', 'in', 100, 1)`)["admitted"])
	pushed := one(t, caller, `select autopost.receive_push('w', 'in', '[{"text": "news", "source_ref": "1"}]')`)
	require.Equal(t, "w", caller.Exec(`select autopost.ready_workspaces(10)`)[0][0])
	const claim = `select delivery_id::text, claim_token from autopost.claim_deliveries('w', 'n8n', 10) order by channel_id`
	work := caller.Exec(claim)
	require.Len(t, work, 2)
	const commit = `select autopost.commit_outcome('w', $1, $2, $3::jsonb)`
	for n, w := range work {
		require.Equal(t, true, one(t, caller, `select autopost.start_call('w', $1, $2)`, w...)["applied"])
		require.Equal(t, true, one(t, caller, `select autopost.record_series_progress('w', $1, $2, '{"step": "text", "ids": ["7"]}')`, w...)["applied"])
		require.Equal(t, true, one(t, caller, `select autopost.extend_lease('w', $1, $2, 400)`, w...)["applied"])
		outcome := []string{sent, forbidden}[n]
		require.Equal(t, true, one(t, caller, commit, append(w, outcome)...)["applied"])
		require.Equal(t, true, one(t, caller, commit, append(w, outcome)...)["repeated"])
	}
	run := one(t, caller, `select autopost.get_run('w', $1::text::uuid)`, pushed["run_id"])
	require.Equal(t, "push", run["kind"])
	failed := work[1][0]
	require.Equal(t, "channel_not_resumed", caller.Exec(`select r ->> 'reason' from jsonb_array_elements(
		autopost.manual_requeue('w', array[$1]::uuid[], 'olga', 'again') -> 'results') r`, failed)[0][0])
	require.Equal(t, true, one(t, caller, `select autopost.resume_channel('w', 'b', 'olga', 'it is back', false)`)["applied"])
	require.Equal(t, true, one(t, caller, `select autopost.manual_requeue('w', array[$1]::uuid[], 'olga', 'again')`, failed)["applied"])
	again := caller.Exec(claim)
	require.Len(t, again, 1)
	require.Equal(t, true, one(t, caller, `select autopost.start_call('w', $1, $2)`, again[0]...)["applied"])
	require.Equal(t, "sent", one(t, caller, commit, append(again[0], sent)...)["status"])

	require.Equal(t, [][]any{{int64(2)}}, caller.Exec(`select count(*) from autopost.list_deliveries('w', '{"status": "sent"}', 10)`))
	require.Equal(t, [][]any{{"sent"}}, caller.Exec(`select action from autopost.list_events('w', jsonb_build_object('delivery_id', $1::text), 20)
		order by ts desc limit 1`, failed))
	require.Equal(t, [][]any{{int64(2)}}, caller.Exec(`select count(*) from autopost.list_channels('w', 10)`))
	require.Equal(t, [][]any{{int64(0)}}, caller.Exec(`select count(*) from autopost.verify('w') where violations > 0`))
	require.EqualValues(t, 0, one(t, caller, `select autopost.recover_sending_leases('w')`)["recovered"])
	require.ErrorContains(t, caller.Start(`select autopost.receive_push('other', 'in', '[{"text": "x"}]')`).Err(), "AP002")
}

// The caller may not use functions of the daemon, helpers or rows. Each is refused by name, with any arguments.
func TestCallerIsRefusedAllElse(t *testing.T) {
	t.Parallel()
	db, caller := life(t)
	refused := pgtest.Column[string](db, `
		select format('select autopost.%I(%s)', p.proname, (
			select string_agg(format('null::%I.%I', y.typnamespace::regnamespace, y.typname), ', ' order by a.n)
			from unnest(p.proargtypes) with ordinality a (t, n) join pg_type y on y.oid = a.t))
		from pg_proc p
		where p.pronamespace = 'autopost'::regnamespace and p.prorettype <> 'trigger'::regtype
		and (not p.prosecdef or not has_function_privilege('autopost_caller', p.oid, 'execute')) order by 1`)
	require.Greater(t, len(refused), 80)
	for _, name := range []string{"get_credential", "apply_settings", "create_api_key", "resolve_api_key", "ensure_event_partitions", "commit_items"} {
		require.True(t, slices.ContainsFunc(refused, func(call string) bool { return strings.HasPrefix(call, "select autopost."+name+"(") }), name)
	}
	for _, call := range refused {
		require.ErrorContains(t, caller.Start(call).Err(), "42501", call)
	}
	for _, table := range pgtest.Column[string](db, `
		select c.relname::text from pg_class c where c.relnamespace = 'autopost'::regnamespace and c.relkind in ('r', 'p', 'v')`) {
		require.ErrorContains(t, caller.Start(`select count(*) from autopost.`+table).Err(), "42501", table)
	}
}
