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

// A file that is applied and a setting that is changed are both recorded in the one log: who waits for whom is settled before either writes there.
func TestApplyingAndASettingWaitInOneOrder(t *testing.T) {
	t.Parallel()
	base := world(t, "a")
	holder, file, setting := base.Session("holder", ""), base.Session("file", "engine"), base.Session("setting", "engine")
	holder.Exec(`begin`)
	holder.Exec(`insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref) values ('w', 'second', 'telegram', 'env:B')`)
	applied := file.Start(`select autopost.apply_config('w', '[{"kind": "credential", "id": "first", "fields": {"platform": "telegram", "secret_ref": "env:A"}},
		{"kind": "credential", "id": "second", "fields": {"platform": "telegram", "secret_ref": "env:B"}}, {"kind": "channel", "id": "a", "fields": {"title": "A"}}]', 'o', 'r', false)`)
	require.Equal(t, []string{"holder"}, applied.Blocked(), "the first credential is recorded")
	changed := setting.Start(`select autopost.apply_settings('{"delivery_retention_days": 100}', 'o', 'r', false)`)
	require.Equal(t, []string{"file"}, changed.Blocked())
	holder.Exec(`rollback`)
	applied.Wait()
	changed.Wait()
}
