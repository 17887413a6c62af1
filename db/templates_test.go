package db_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const putTemplate = `select autopost.put_template('w', 't', null, jsonb_build_object('body', $1::text), 'ann', 'test')`

// Two who write a template at once make two versions, and hold up nobody who posts.
func TestSameTemplateAtOnce(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"commit", "rollback"} {
		base := world(t, "a")
		base.Exec(`insert into autopost.templates (workspace_id, template_id, version, body) values ('w', 'default', 1, '{text}, by default')`)
		first, second := base.Session("first", "engine"), base.Session("second", "engine")
		first.Exec(`begin`)
		require.EqualValues(t, 1, answer(t, first.Exec(putTemplate, "one"))["version"])
		waiting := second.Start(putTemplate, "two")
		require.Equal(t, []string{"first"}, waiting.Blocked())
		require.EqualValues(t, 1, answer(t, impatient(base, "poster").Exec(enqueue, "in", "x"))["enqueued"])
		first.Exec(end)
		want := map[string]int{"commit": 2, "rollback": 1}[end]
		require.EqualValues(t, want, answer(t, waiting.Wait())["version"])
	}
}
