package db_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
	"autopost/internal/testing/posttest"
)

// Another session changes the credential when it is refused. The refusal waits for that session
// and is recorded. All channels of the credential pause, so no later call would report it.
func TestRefusalOfALockedCredentialIsRecorded(t *testing.T) {
	t.Parallel()
	base := world(t, "a", "b")
	base.Exec(`insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref)
		select distinct 'w', c.auth_ref, c.platform, 'env:NOTHING' from autopost.channels c on conflict do nothing`)
	posttest.Post(base, "w", "one")
	engine, holder := base.Session("engine", "engine"), base.Session("holder", "")
	claimed := engine.Exec(`select c.delivery_id, c.claim_token from autopost.claim_deliveries('w', 'run', 1) c`)[0]
	engine.Exec(`select autopost.start_call('w', $1, $2)`, claimed...)
	holder.Exec(`begin`)
	holder.Exec(`select 1 from autopost.credential_health for update`)
	waiting := engine.Start(`select autopost.commit_outcome('w', $1, $2,
		'{"ok": false, "error": {"category": "PERMANENT", "scope": "channel", "code": "tg_unauthorized", "known": true, "message": "no"}}')`, claimed...)
	require.Equal(t, []string{"holder"}, waiting.Blocked())
	holder.Exec(`commit`)
	waiting.Wait()
	require.Equal(t, 2, pgtest.Value[int](base, `select count(*)::int from autopost.channels where auth_held`))
	require.Equal(t, 1, pgtest.Value[int](base, `select count(*)::int from autopost.events where action = 'auth_lost'`))
	require.Equal(t, 1, pgtest.Value[int](base, `select count(*)::int from autopost.alerts where ended_at is null`))
}
