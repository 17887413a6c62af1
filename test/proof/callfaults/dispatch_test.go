package callfaults

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/adapter/telegram"
	"autopost/internal/dispatch"
	"autopost/internal/outbound"
	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

const (
	bot   = "7001009:AAnthTelegramToken"
	lease = 2 * time.Second
	// every is the stride of an ordinary run, which covers a few calls of each function.
	every = 4
)

type keys struct{}

func (keys) Credential(context.Context, string, string, autopost.Platform) (autopost.Secret, error) {
	return autopost.NewSecret(bot), nil
}

func (keys) Renew(context.Context, autopost.Delivery, autopost.Secret, autopost.Error) (autopost.Secret, error) {
	return autopost.Secret{}, nil
}

func (keys) MaterialsFor(autopost.Delivery) autopost.MediaAccess { return nil }

var deliveryCalls = []string{
	"ready_work", "claim_and_start", "start_call_batch", "record_series_progress", "extend_lease", "commit_outcome_batch",
	"release_claims", "release_lost", "touch_run",
}

// Nothing is lost. A copy exists only after an unknown outcome, and never if the channel's policy is hold.
func TestDispatchSurvivesAnyFailedCall(t *testing.T) {
	t.Parallel()
	everyCall(t, every, deliveryCalls, posts)
}

// posts sends posts, whole and in parts.
func posts(t *testing.T, h *harness.Harness, c *calls) (unknown int) {
	require.NoError(t, h.World.Telegram.AddBot(bot))
	for i, policy := range []string{"reconcile", "hold"} {
		h.Channel("news", harness.Channel{ID: fmt.Sprint("channel-", i), Platform: harness.Telegram, OnUnknown: policy})
	}
	h.Endpoint("news", "cms", "secret-cms")
	h.Exec(`update autopost.settings set value = to_jsonb($1::int) where key = 'sending_lease_seconds'`, int(lease.Seconds()))
	h.Exec(`update autopost.settings set value = '1' where key = 'lease_margin_seconds'`)
	h.Exec(`update autopost.retry_policies set base_ms = 100, cap_ms = 200`)
	contents := []string{`{"text": "One"}`, `{"text": "In parts", "thread": [{"text": "Two"}], "first_comment": "Three"}`}
	for _, post := range contents {
		h.Exec(`select autopost.enqueue_messages_and_deliveries('news', 'cms', 'api', $1::jsonb)`, post)
	}

	end := serve(t, dispatcher(t, h, c.db, lease).Run)
	h.Until("all is final", func() bool {
		h.Exec(`select autopost.recover_sending_leases('news'), autopost.recover_claimed_leases('news')`)
		return pgtest.Value[bool](h.DB, `select not exists (select 1 from autopost.deliveries d
			where d.status in ('queued', 'sending', 'retry') and d.next_retry_at is distinct from 'infinity')`)
	})
	end()
	h.Verified()
	return judge(t, h, 2*len(contents))
}

func dispatcher(t *testing.T, h *harness.Harness, store dispatch.Store, lease time.Duration) *dispatch.Dispatcher {
	client, err := outbound.Operator(outbound.OperatorConfig{})
	require.NoError(t, err)
	t.Cleanup(client.CloseIdleConnections)
	adapter, err := telegram.New(telegram.Config{BaseURL: h.WorldURL + "/telegram", Client: client})
	require.NoError(t, err)
	d, err := dispatch.New(dispatch.Config{Lease: lease, AdapterTimeout: lease / 2, Poll: 200 * time.Millisecond, Drain: time.Second}, dispatch.Deps{
		Store: store, Credentials: keys{}, Media: keys{},
		Adapters: map[autopost.Platform]autopost.Adapter{autopost.Telegram: adapter}, Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	return d
}

// judge compares the posts of the platform with the database, and counts the unknown outcomes.
func judge(t *testing.T, h *harness.Harness, deliveries int) (unknown int) {
	t.Helper()
	type chat struct {
		Policy              string
		Sent, Held, Unknown int
	}
	chats := map[string]chat{}
	rows := pgtest.Column[map[string]any](h.DB, `select jsonb_build_object('chat', c.target_id, 'policy', c.on_unknown,
		'sent', count(*) filter (where d.status = 'sent'), 'held', count(*) filter (where d.status = 'retry'),
		'unknown', (select count(*) from autopost.events e where e.channel_id = c.channel_id and e.action = 'unknown_outcome'))
		from autopost.channels c join autopost.deliveries d using (workspace_id, channel_id) group by c.target_id, c.on_unknown, c.channel_id`)
	all := 0
	for _, row := range rows {
		number := func(key string) int { return int(row[key].(float64)) }
		c := chat{row["policy"].(string), number("sent"), number("held"), number("unknown")}
		chats[row["chat"].(string)] = c
		all += c.Sent + c.Held
		unknown += c.Unknown
		require.LessOrEqual(t, c.Held, c.Unknown, "only unknown outcomes wait")
	}
	require.Equal(t, deliveries, all, "each is sent or held")
	steps := map[string]int{}
	for step, copies := range h.Copies() {
		c := chats[step.Chat]
		steps[step.Chat]++
		if c.Policy == "hold" {
			require.Equal(t, 1, copies, "copies under hold")
		} else {
			require.LessOrEqual(t, copies, min(2, 1+c.Unknown), "copies under reconcile after %d unknown outcomes", c.Unknown)
		}
	}
	for name, c := range chats {
		if c.Held == 0 {
			require.Equal(t, 4, steps[name], "all texts and parts arrived")
		}
	}
	return unknown
}
