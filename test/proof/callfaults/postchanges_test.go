package callfaults

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

var changeCalls = []string{"ready_act_workspaces", "claim_acts", "start_act", "commit_act"}

// Each change is applied. It is applied twice only after a call with an unknown outcome.
func TestPostChangesSurviveAnyFailedCall(t *testing.T) {
	t.Parallel()
	everyCall(t, 3, changeCalls, changes)
}

// changes edits and pins one post and deletes another.
func changes(t *testing.T, h *harness.Harness, c *calls) (unknown int) {
	require.NoError(t, h.World.Telegram.AddBot(bot))
	chat := h.Channel("news", harness.Channel{ID: "channel", Platform: harness.Telegram})
	h.Endpoint("news", "cms", "secret-cms")
	sent := map[string]string{}
	for _, text := range []string{"Old", "Wrong"} {
		sent[text] = pgtest.Value[string](h.DB, `select autopost.enqueue_messages_and_deliveries('news', 'cms', 'api', jsonb_build_object('text', $1::text)) ->> 'message_id'`, text)
	}
	c.pause(true)
	posted := serve(t, dispatcher(t, h, c.db, time.Minute).Run)
	h.Drained("news")
	posted()
	c.pause(false)
	require.Len(t, h.Accepted(), len(sent), "a slow call would leave a copy that no change touches")
	h.Exec(`update autopost.settings set value = to_jsonb($1::int) where key = 'sending_lease_seconds'`, int(lease.Seconds()))
	h.Exec(`update autopost.settings set value = '1' where key = 'lease_margin_seconds'`)

	const ask = `select autopost.request_acts('news', $1, $2::uuid, null, $3::jsonb, null, 'ann', 'test', false)`
	h.Exec(ask, "edit", sent["Old"], `{"text": "New"}`)
	h.Exec(ask, "pin", sent["Old"], nil)
	h.Exec(ask, "delete", sent["Wrong"], nil)
	end := serve(t, dispatcher(t, h, c.db, lease).Run)
	h.UntilTrue(`select not exists (select 1 from autopost.post_acts a where a.status in ('queued', 'sending', 'retry'))`)
	end()
	require.Equal(t, []string{"delete done", "edit done", "pin done"}, pgtest.Column[string](h.DB, `select kind || ' ' || status from autopost.post_acts order by kind`))
	unknownOf := map[string]int{}
	for _, kind := range pgtest.Column[string](h.DB, `select meta ->> 'kind' from autopost.events where action = 'act_retry_scheduled' and error -> 'known' = 'false'`) {
		unknownOf[kind]++
		unknown++
	}
	made := map[string]int{}
	for _, e := range h.World.Log.Entries(sim.Filter{Chat: chat}) {
		made["edit"] += len(e.Edited)
		made["pin"] += len(e.Pinned)
		made["delete"] += len(e.Removed)
	}
	for _, kind := range []string{"edit", "pin", "delete"} {
		require.GreaterOrEqual(t, made[kind], 1, kind)
		require.LessOrEqual(t, made[kind], 1+unknownOf[kind], "%s: applied again only after an unknown outcome", kind)
	}
	id, err := strconv.ParseInt(chat, 10, 64)
	require.NoError(t, err)
	var shown []string
	for _, m := range h.World.Telegram.Messages(id) {
		shown = append(shown, m.Text)
	}
	require.Equal(t, []string{"New"}, shown)
	h.Verified()
	return unknown
}
