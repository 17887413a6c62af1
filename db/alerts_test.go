package db_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/pgtest"
	"autopost/internal/posttest"
)

// A look for alerts reads what waits and what went wrong, not what was sent: counted by
// the rows that the tables gave, while each of 4000 channels has something due.
func TestLooksDoNotReadTheHistory(t *testing.T) {
	t.Parallel()
	rows := 20_000
	if pgtest.Long() {
		rows = 1_000_000
	}
	base := pgtest.New(t)
	posttest.Workspace(base, "w")
	base.Exec(`insert into autopost.channels (workspace_id, channel_id, platform, target_id, auth_ref, rate_group)
		select 'w', 'c' || n, 'telegram', '@' || n, 'bot', 'bot' from generate_series(0, 3999) n`)
	base.Exec(fmt.Sprintf(history, rows))
	base.Exec(`update autopost.channel_gates set ready_at = now()`)
	session := base.Session("monitor", "")
	for _, look := range []string{`autopost.check_alerts('w')`, `autopost.check_alerts('w')`, `autopost.check_installation()`, `autopost.claim_notices('w', 10)`} {
		session.Exec(`begin`)
		before := rowsRead(session)
		began := time.Now()
		session.Exec(`select ` + look)
		took := time.Since(began)
		read := rowsRead(session) - before
		session.Exec(`commit`)
		require.Less(t, read, int64(20_000), look)
		t.Logf("%s: %d rows read in %s, of a history of %d", look, read, took, rows)
	}
	require.True(t, pgtest.Value[bool](base, `select exists (select 1 from autopost.alerts where kind = 'dead')`), "there was something to see")
}

// What a person may be told of stands in the manual.
func TestEveryAlertIsInTheManual(t *testing.T) {
	t.Parallel()
	manual, err := os.ReadFile("../docs/operate/alerts.md")
	require.NoError(t, err)
	for _, kind := range pgtest.Column[string](pgtest.New(t), `select kind from autopost.alert_kinds()`) {
		require.Contains(t, string(manual), "| `"+kind+"` |")
	}
}
