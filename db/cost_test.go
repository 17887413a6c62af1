package db_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/pgtest"
	"autopost/internal/posttest"
)

// What a look across workspaces costs goes by those where something waits, not by
// those there are: counted in pages, which no busy machine changes.
func TestLookAcrossWorkspacesPassesThoseWithoutWork(t *testing.T) {
	t.Parallel()
	base := pgtest.New(t)
	base.Exec(`insert into autopost.workspaces (workspace_id) select 'w' || n from generate_series(1, 400) n`)
	base.Exec(`insert into autopost.channels (workspace_id, channel_id, platform, target_id, auth_ref, rate_group)
		select w.workspace_id, 'c' || n, 'telegram', '@' || n, 'bot', 'group' || n % 2 from autopost.workspaces w, generate_series(1, 4) n`)
	posttest.Workspace(base, "busy")
	posttest.Channel(base, "busy", "a")
	posttest.Channel(base, "busy", "b", posttest.Group("other"))
	posttest.Post(base, "busy", "one")
	base.Exec(`analyze`)

	look := base.Session("look", "engine")
	for _, query := range []string{`select autopost.ready_workspaces_after('', 100)`, `select autopost.next_wake_ms()`} {
		explain := `explain (analyze, buffers, format json) ` + query
		look.Exec(explain) // fills the caches of the session
		root := look.Exec(explain)[0][0].([]any)[0].(map[string]any)["Plan"].(map[string]any)
		require.Less(t, root["Shared Hit Blocks"].(float64)+root["Shared Read Blocks"].(float64), 100., query)
	}
	require.Equal(t, [][]any{{"busy"}}, look.Exec(`select autopost.ready_workspaces_after('', 100)`))
}
