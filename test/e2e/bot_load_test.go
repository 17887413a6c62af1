package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/sim/maxmessenger"
	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

// Five bots answer many customers at a steady rate. Each question has one answer, in the order of its dialog. The log has
// the time from the update to the acceptance of the answer, beside that of a handler that only answers. The full size is
// 1,000 dialogs and 100 questions a second, for a minute.
func TestTheShopBotUnderLoad(t *testing.T) {
	t.Parallel()
	const bots = 5
	dialogs, rate, total := 40, 20, 120
	if pgtest.Long() {
		dialogs, rate, total = 1000, 100, 6000
	}
	h := harness.New(t, harness.WithLogSize(100_000), harness.WithConnections(16))
	for n := range bots {
		workspace := fmt.Sprint("shop-", n)
		h.Workspace(workspace)
		h.Channel(workspace, harness.Channel{ID: workspace, Platform: harness.MAX})
		h.Exec(`insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, secret_hash, ingress_rps, meta)
			select $1, 'bot', 'bot_webhook', encode(sha256(convert_to($1, 'UTF8')), 'hex'), 1000, jsonb_build_object('auth_ref', c.auth_ref)
			from autopost.channels c where c.workspace_id = $1`, workspace)
		h.Exec(`select autopost.put_bot_rule($1, 'echo', '{"keywords": ["question"], "response_template": "Answer to {text}"}', 'test', 'test', false)`, workspace)
	}
	for n := range dialogs {
		h.World.MAX.AddChat(maxmessenger.Chat{ID: int64(10_000 + n), Type: "dialog"})
	}
	d := h.Serve()
	bare := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	defer bare.Close()

	var mu sync.Mutex
	asked, handled, answered := make([]time.Time, total), []time.Duration{}, []time.Duration{}
	var running sync.WaitGroup
	pace := time.NewTicker(time.Second / time.Duration(rate))
	defer pace.Stop()
	before := make([]chan struct{}, dialogs) // closed when the last question of a dialog was acknowledged
	for n := range total {
		<-pace.C
		chat := n % dialogs
		last, done := before[chat], make(chan struct{})
		before[chat] = done
		running.Go(func() {
			defer close(done)
			if last != nil {
				<-last // a platform sends the updates of a dialog one after the other
			}
			body := fmt.Sprintf(`{"update_type": "message_created", "timestamp": %d, "message": {"recipient": {"chat_id": %[2]d, "chat_type": "dialog"},
				"body": {"mid": "mid.in.%[1]d", "text": "question %[1]d"}, "sender": {"user_id": 7}}}`, n, 10_000+chat)
			began := time.Now()
			status := post(t, bare.URL, "X-Max-Bot-Api-Secret", "none", body)
			took := time.Since(began)
			at := time.Now()
			if got := post(t, d.URL+"/hooks/max", "X-Max-Bot-Api-Secret", fmt.Sprint("shop-", chat%bots), body); got != http.StatusOK || status != http.StatusOK {
				t.Errorf("an update was answered %d", got)
			}
			mu.Lock()
			defer mu.Unlock()
			handled, asked[n] = append(handled, took), at
		})
	}
	running.Wait()
	h.UntilTrue(`select count(*) filter (where status = 'sent') = $1 from autopost.bot_outbox`, total)
	next := make([]int, dialogs) // the next answer of each dialog
	for chat := range next {
		next[chat] = chat
	}
	for _, e := range h.Accepted(sim.Filter{Platform: "max"}) {
		id, err := strconv.Atoi(e.Chat)
		require.NoError(t, err)
		chat := id - 10_000
		require.Equal(t, fmt.Sprint("Answer to question ", next[chat]), e.Text, "dialog %d", chat)
		answered = append(answered, e.End.Sub(asked[next[chat]]))
		next[chat] += dialogs
	}
	require.Len(t, answered, total)
	slices.Sort(answered)
	slices.Sort(handled)
	t.Logf("%d questions, %d a second, %d dialogs of %d bots: update to acceptance p50 %s, p99 %s; a bare handler p50 %s, p99 %s", total, rate, dialogs, bots,
		answered[total/2], answered[total*99/100], handled[total/2], handled[total*99/100])
	for n := range bots {
		require.Zero(t, pgtest.Value[int](h.DB, `select sum(unknown_outcomes)::int from autopost.bot_outbox where workspace_id = $1`, fmt.Sprint("shop-", n)))
	}
	h.Verified()
}
