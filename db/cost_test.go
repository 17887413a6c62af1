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

// What a claim after an unknown outcome asks about the channel's other posts costs the
// same however many it has had, and however many wait.
func TestKnownPostsAreTheNewest(t *testing.T) {
	t.Parallel()
	base := world(t, "a", "b")
	posttest.Post(base, "w", "one")
	base.Exec(`set session_replication_role = replica;
		insert into autopost.deliveries (workspace_id, delivery_id, message_id, channel_id, hash_version, content_hash, status, sent_at, finished_at, provider_message_id)
		select 'w', autopost.uuid_v7_of(now() - n * interval '1 minute', n::text), d.message_id, 'a', 1, 'hash ' || n, 'sent', now() - n * interval '1 minute', now() - n * interval '1 minute', n::text
		from generate_series(1, 20000) n, (select message_id from autopost.deliveries limit 1) d;
		insert into autopost.deliveries (workspace_id, delivery_id, message_id, channel_id, hash_version, content_hash, status, next_retry_at, not_before)
		select 'w', autopost.uuid_v7_of(now(), 'waits ' || n), d.message_id, 'a', 1, 'waits ' || n, case when n % 2 = 0 then 'queued' else 'retry' end, now() - interval '1 day', now() - interval '1 day'
		from generate_series(1, 20000) n, (select message_id from autopost.deliveries limit 1) d;
		set session_replication_role = origin`)
	base.Exec(`analyze`)
	look := base.Session("look", "")
	const query = `select autopost.known_posts('w', 'a', gen_random_uuid(), now() - interval '150 seconds')`
	explain := `explain (analyze, buffers, format json) ` + query
	look.Exec(explain) // fills the caches of the session
	root := look.Exec(explain)[0][0].([]any)[0].(map[string]any)["Plan"].(map[string]any)
	require.Less(t, root["Shared Hit Blocks"].(float64)+root["Shared Read Blocks"].(float64), 3000.)
	t.Logf("%v ms", root["Actual Total Time"])
	require.Equal(t, [][]any{{map[string]any{"before": []any{"3"}, "others": []any{"1", "2", "3", "4", "5", "6", "7"}, "others_in_doubt": false}}}, look.Exec(query))
}
