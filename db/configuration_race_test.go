package db_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A file that is applied waits for the channels that it changes, for no others; a
// second one waits for the first.
func TestApplyingWaitsForWhatItChangesAlone(t *testing.T) {
	t.Parallel()
	base := world(t, "a", "b")
	busy, file, other := base.Session("busy", ""), base.Session("file", "engine"), base.Session("other", "engine")
	busy.Exec(`begin`)
	busy.Exec(`select g.ready_at from autopost.channel_gates g where g.channel_id = 'a' for update`)
	busy.Exec(`select c.title from autopost.channels c where c.channel_id = 'a' for update`)

	const apply = `select autopost.apply_config('w', '[{"kind": "channel", "id": "a", "fields": {"title": null}},
		{"kind": "channel", "id": "b", "fields": {"title": "B"}}]', 'o', 'r', false) ->> 'unchanged'`
	require.Equal(t, [][]any{{"1"}}, file.Exec(apply), "a is so already")

	waiting := file.Start(`select autopost.apply_config('w', '[{"kind": "channel", "id": "a", "fields": {"title": "A"}}]', 'o', 'r', false)`)
	require.Equal(t, []string{"busy"}, waiting.Blocked())
	second := other.Start(`select autopost.put_channel('w', 'b', '{"title": "C"}', 'o', 'r', false)`)
	require.Equal(t, []string{"file"}, second.Blocked(), "one change of a configuration at a time")
	busy.Exec(`commit`)
	waiting.Wait()
	second.Wait()
}
