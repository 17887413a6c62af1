package e2e

import (
	"testing"
	"time"

	"autopost/internal/sim"
	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

// Without NOTIFY one shared query wakes each stage, long before its own poll.
func TestEveryStageWakesWithoutNotify(t *testing.T) {
	t.Parallel()
	h := withResults(t, "results")
	chat := h.Channel("news", harness.Channel{ID: "on-telegram", Platform: harness.Telegram})
	other := h.Channel("news", harness.Channel{ID: "on-max", Platform: harness.MAX})
	h.Exec(`update autopost.settings set value = '1' where key = 'fanout_chunk_channels'`)
	nobody := pgtest.New(t) // nothing rings in another database
	d := h.Serve("AUTOPOST_LISTEN_URL="+nobody.URL("engine"), "TEST_FIRST_KEY="+firstKey, "TEST_SECOND_KEY="+secondKey)

	h.Push(d, "secret-cms", harness.Post("text", "Only for a moment", "media", pictures(h, 1),
		"remove_at", time.Now().Add(20*time.Second).Format(time.RFC3339Nano)))
	h.Until("its picture is fetched, it is fanned out and sent", func() bool {
		return len(h.Accepted(sim.Filter{Chat: chat})) > 0 && len(h.Accepted(sim.Filter{Chat: other})) > 0
	})
	h.Until("it is taken down", func() bool {
		return len(shown(h, harness.Telegram, chat)) == 0 && len(shown(h, harness.MAX, other)) == 0
	})
	h.Until("the receiver has heard of it", func() bool { ids, _ := received(h, "results"); return len(ids) > 0 })
	h.Exec(`insert into autopost.pull_sources (workspace_id, source_id, kind, config_json)
		values ('news', 'feed', 'rss', jsonb_build_object('url', $1::text, 'interval_seconds', 60))`, h.WorldURL+"/files/none")
	h.UntilTrue(`select exists (select 1 from autopost.pull_cursors)`)
}
