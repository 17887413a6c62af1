package e2e

import (
	"testing"
	"time"

	"autopost/internal/pgtest"
	"autopost/internal/sim"
	"autopost/test/house"
)

// Where no NOTIFY is heard, each stage is told of its work by the question that is asked for all of them: long before it
// would look by itself.
func TestEveryStageIsToldOfItsWorkWithoutNotify(t *testing.T) {
	t.Parallel()
	const patience = 2 * time.Minute // most stages look by themselves every five
	h := resultsHouse(t, "results")
	chat := h.Channel("news", house.Channel{ID: "on-telegram", Platform: house.Telegram})
	other := h.Channel("news", house.Channel{ID: "on-max", Platform: house.MAX})
	h.Exec(`update autopost.settings set value = '1' where key = 'fanout_chunk_channels'`)
	nobody := pgtest.New(t) // nothing rings in another database
	d := h.Serve("AUTOPOST_LISTEN_URL="+nobody.URL("engine"), "HOUSE_FIRST_KEY="+firstKey, "HOUSE_SECOND_KEY="+secondKey)

	h.Push(d, "secret-cms", house.Post("text", "Only for a moment", "media", pictures(h, 1),
		"remove_at", time.Now().Add(20*time.Second).Format(time.RFC3339Nano)))
	h.Until("its picture is fetched, it is fanned out and sent", patience, func() bool {
		return len(h.Accepted(sim.Filter{Chat: chat})) > 0 && len(h.Accepted(sim.Filter{Chat: other})) > 0
	})
	h.Until("it is taken down", patience, func() bool {
		return len(shown(h, house.Telegram, chat)) == 0 && len(shown(h, house.MAX, other)) == 0
	})
	h.Until("the receiver has heard of it", patience, func() bool { ids, _ := received(h, "results"); return len(ids) > 0 })
	h.Exec(`insert into autopost.pull_sources (workspace_id, source_id, kind, config_json)
		values ('news', 'feed', 'rss', jsonb_build_object('url', $1::text, 'interval_seconds', 60))`, h.WorldURL+"/files/none")
	h.UntilTrue(patience, `select exists (select 1 from autopost.pull_cursors)`)
}
