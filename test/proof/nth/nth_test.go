package nth

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/adapter/telegram"
	"autopost/internal/dispatch"
	"autopost/internal/outbound"
	"autopost/internal/pgtest"
	"autopost/test/house"
)

func TestMain(m *testing.M) { house.Main(m) }

const (
	bot   = "7001009:AAnthTelegramToken"
	lease = 2 * time.Second
	// every is the stride of an ordinary run, which takes a few calls of each kind.
	every = 4
)

type keys struct{}

func (keys) Credential(context.Context, string, string, autopost.Platform) (autopost.Secret, error) {
	return autopost.NewSecret(bot), nil
}

func (keys) Renew(context.Context, autopost.Delivery, autopost.Secret, autopost.Error) (autopost.Secret, error) {
	return autopost.Secret{}, nil
}

func (keys) MaterialsFor(autopost.Delivery) autopost.Materials { return nil }

// Whichever of its calls to the database does not arrive, or is answered to nobody, the
// dispatcher goes on: nothing is lost, and there is a copy only where an outcome was
// recorded as unknown before, and none where the channel says hold.
func TestTheNthCallOfADispatcherFails(t *testing.T) {
	t.Parallel()
	everyCall(t, every, posts)
}

// posts go out, whole and in parts.
func posts(t *testing.T, h *house.House, c *calls) (doubts int) {
	require.NoError(t, h.World.Telegram.AddBot(bot))
	for i, policy := range []string{"reconcile", "hold"} {
		h.Channel("news", house.Channel{ID: fmt.Sprint("channel-", i), Platform: house.Telegram, OnUnknown: policy})
	}
	h.Endpoint("news", "cms", "secret-cms")
	h.Exec(`update autopost.channels set settings = '{"long_text": "split"}'`)
	h.Exec(`update autopost.settings set value = to_jsonb($1::int) where key = 'sending_lease_seconds'`, int(lease.Seconds()))
	h.Exec(`update autopost.settings set value = '1' where key = 'lease_margin_seconds'`)
	h.Exec(`update autopost.retry_policies set base_ms = 100, cap_ms = 200`)
	texts := []string{"One", strings.Repeat("In parts. ", 600)}
	for _, text := range texts {
		h.Exec(`select autopost.enqueue_messages_and_deliveries('news', 'cms', 'api', jsonb_build_object('text', $1::text))`, text)
	}

	end := serve(t, dispatcher(t, h, store{c}, noActs{}, nil).Run)
	h.Until("all is final", patience, func() bool {
		h.Exec(`select autopost.recover_sending_leases('news'), autopost.recover_claimed_leases('news')`)
		return pgtest.Value[bool](h.DB, `select not exists (select 1 from autopost.deliveries d
			where d.status in ('queued', 'sending', 'retry') and d.next_retry_at is distinct from 'infinity')`)
	})
	end()
	h.Verified()
	return judge(t, h, 2*len(texts))
}

func dispatcher(t *testing.T, h *house.House, s store, acts dispatch.Acts, wake <-chan struct{}) *dispatch.Dispatcher {
	client, err := outbound.Operator(outbound.OperatorConfig{})
	require.NoError(t, err)
	t.Cleanup(client.CloseIdleConnections)
	adapter, err := telegram.New(telegram.Config{BaseURL: h.WorldURL + "/telegram", Client: client})
	require.NoError(t, err)
	d, err := dispatch.New(dispatch.Config{Lease: lease, AdapterTimeout: time.Second, Poll: 200 * time.Millisecond, Drain: time.Second}, dispatch.Deps{
		Queue: s, Calls: s, Commits: s, Runs: s, Acts: acts, ActsWake: wake, Credentials: keys{}, Media: keys{},
		Adapters: map[autopost.Platform]autopost.Adapter{autopost.Telegram: adapter}, Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	return d
}

// judge compares what the receiver has with what the database says, and counts the doubts.
func judge(t *testing.T, h *house.House, deliveries int) (doubts int) {
	t.Helper()
	type chat struct {
		Policy            string
		Sent, Held, Doubt int
	}
	chats := map[string]chat{}
	rows := pgtest.Column[map[string]any](h.DB, `select jsonb_build_object('chat', c.target_id, 'policy', c.on_unknown,
		'sent', count(*) filter (where d.status = 'sent'), 'held', count(*) filter (where d.status = 'retry'),
		'doubt', (select count(*) from autopost.events e where e.channel_id = c.channel_id and e.action = 'unknown_outcome'))
		from autopost.channels c join autopost.deliveries d using (workspace_id, channel_id) group by c.target_id, c.on_unknown, c.channel_id`)
	all := 0
	for _, row := range rows {
		number := func(key string) int { return int(row[key].(float64)) }
		c := chat{row["policy"].(string), number("sent"), number("held"), number("doubt")}
		chats[row["chat"].(string)] = c
		all += c.Sent + c.Held
		doubts += c.Doubt
		require.LessOrEqual(t, c.Held, c.Doubt, "only what is in doubt waits")
	}
	require.Equal(t, deliveries, all, "each is sent or held")
	places := map[string]int{}
	for place, copies := range h.Copies() {
		c := chats[place.Chat]
		places[place.Chat]++
		if c.Policy == "hold" {
			require.Equal(t, 1, copies, "copies under hold")
		} else {
			require.LessOrEqual(t, copies, min(2, 1+c.Doubt), "copies under reconcile after %d doubts", c.Doubt)
		}
	}
	for name, c := range chats {
		if c.Held == 0 {
			require.Equal(t, 3, places[name], "all texts and parts arrived")
		}
	}
	return doubts
}
