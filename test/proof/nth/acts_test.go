package nth

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/dispatch"
	"autopost/internal/pgtest"
	"autopost/internal/sim"
	"autopost/test/house"
)

// acts are the calls about what is to be done to posts that were sent.
type acts struct{ *calls }

func (a acts) ReadyActWorkspaces(ctx context.Context, limit int) ([]string, error) {
	return through(a.calls, "ready_act_workspaces", func() ([]string, error) { return a.db.ReadyActWorkspaces(ctx, limit) })
}

func (a acts) ClaimActs(ctx context.Context, workspace, runID string, limit int) ([]autopost.Act, error) {
	return through(a.calls, "claim_acts", func() ([]autopost.Act, error) { return a.db.ClaimActs(ctx, workspace, runID, limit) })
}

func (a acts) StartAct(ctx context.Context, workspace, actID, claimToken string) (dispatch.Start, error) {
	return through(a.calls, "start_act", func() (dispatch.Start, error) {
		start, err := a.db.StartAct(ctx, workspace, actID, claimToken)
		return dispatch.Start(start), err
	})
}

func (a acts) CommitAct(ctx context.Context, workspace, actID, claimToken string, failure *autopost.Error) (dispatch.Commit, error) {
	return through(a.calls, "commit_act", func() (dispatch.Commit, error) {
		commit, err := a.db.CommitAct(ctx, workspace, actID, claimToken, failure)
		return dispatch.Commit(commit), err
	})
}

// What is to be done to posts is done, whichever call fails, and twice only after a call
// that was recorded as one of which nobody knows what it did.
func TestTheNthCallOfActsFails(t *testing.T) {
	t.Parallel()
	everyCall(t, 3, afterlife)
}

// afterlife has one post edited and pinned, and another one removed.
func afterlife(t *testing.T, h *house.House, c *calls) (doubts int) {
	require.NoError(t, h.World.Telegram.AddBot(bot))
	chat := h.Channel("news", house.Channel{ID: "channel", Platform: house.Telegram})
	h.Endpoint("news", "cms", "secret-cms")
	h.Exec(`update autopost.settings set value = to_jsonb($1::int) where key = 'sending_lease_seconds'`, int(lease.Seconds()))
	h.Exec(`update autopost.settings set value = '1' where key = 'lease_margin_seconds'`)
	sent := map[string]string{}
	for _, text := range []string{"Old", "Wrong"} {
		sent[text] = pgtest.Value[string](h.DB, `select autopost.enqueue_messages_and_deliveries('news', 'cms', 'api', jsonb_build_object('text', $1::text)) ->> 'message_id'`, text)
	}
	posted := serve(t, dispatcher(t, h, store{&calls{db: c.db}}, noActs{}, nil).Run)
	h.Drained("news")
	posted()

	const ask = `select autopost.request_acts('news', $1, $2::uuid, null, $3::jsonb, null, 'ann', 'test', false)`
	h.Exec(ask, "edit", sent["Old"], `{"text": "New"}`)
	h.Exec(ask, "pin", sent["Old"], nil)
	h.Exec(ask, "delete", sent["Wrong"], nil)
	end := serve(t, dispatcher(t, h, store{&calls{db: c.db}}, acts{c}, bell(t)).Run)
	h.UntilTrue(patience, `select not exists (select 1 from autopost.post_acts a where a.status in ('queued', 'sending', 'retry'))`)
	end()
	require.Equal(t, []string{"delete done", "edit done", "pin done"}, pgtest.Column[string](h.DB, `select kind || ' ' || status from autopost.post_acts order by kind`))
	unknown := map[string]int{}
	for _, kind := range pgtest.Column[string](h.DB, `select meta ->> 'kind' from autopost.events where action = 'act_retry_scheduled' and error -> 'known' = 'false'`) {
		unknown[kind]++
		doubts++
	}
	made := map[string]int{}
	for _, e := range h.World.Log.Entries(sim.Filter{Chat: chat}) {
		made["edit"] += len(e.Edited)
		made["pin"] += len(e.Pinned)
		made["delete"] += len(e.Removed)
	}
	for _, kind := range []string{"edit", "pin", "delete"} {
		require.GreaterOrEqual(t, made[kind], 1, kind)
		require.LessOrEqual(t, made[kind], 1+unknown[kind], "%s: done again only in doubt", kind)
	}
	id, err := strconv.ParseInt(chat, 10, 64)
	require.NoError(t, err)
	var shown []string
	for _, m := range h.World.Telegram.Messages(id) {
		shown = append(shown, m.Text)
	}
	require.Equal(t, []string{"New"}, shown)
	h.Verified()
	return doubts
}

// bell rings until the end of the test.
func bell(t *testing.T) <-chan struct{} {
	ring := make(chan struct{})
	serve(t, func(ctx context.Context) error {
		ticker := time.NewTicker(200 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-ticker.C:
			}
			select {
			case <-ctx.Done():
				return nil
			case ring <- struct{}{}:
			}
		}
	})
	return ring
}
