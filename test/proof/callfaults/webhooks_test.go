package callfaults

import (
	"encoding/json"
	"log/slog"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/outbound"
	"autopost/internal/testing/pgtest"
	"autopost/internal/webhooks"
	"autopost/test/harness"
)

const signingKey = "whsec_bnRoLWNhbmFyeS1zaWduaW5nLWtleS0t"

type signing struct{}

func (signing) OpenBound(_, _ string, _ json.RawMessage) (autopost.Secret, error) {
	return autopost.NewSecret(signingKey), nil
}

var webhookCalls = []string{"ready_webhook_workspaces", "enqueue_webhooks", "claim_webhooks", "commit_webhook_batch"}

// A receiver gets each event under one id, and no more copies than recorded calls.
func TestWebhooksSurviveAnyFailedCall(t *testing.T) {
	t.Parallel()
	everyCall(t, 6, webhookCalls, func(t *testing.T, h *harness.Harness, c *calls) (unknown int) {
		const posts = 2
		require.NoError(t, h.World.Webhook.AddEndpoint("results", signingKey))
		h.Channel("news", harness.Channel{ID: "channel", Platform: harness.Telegram, Parallel: posts})
		h.Endpoint("news", "cms", "secret-cms")
		h.Exec(`insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref) values ('news', 'key', 'webhook', 'env:NOBODY_READS_IT')`)
		require.Equal(t, "true", pgtest.Value[string](h.DB, `select autopost.put_webhook('news', 'results', jsonb_build_object('url', $1::text, 'signing_ref', 'key'), 'ann', 'test', false) ->> 'applied'`,
			h.WorldURL+"/webhook/results"))
		h.Exec(`update autopost.settings set value = '1' where key = 'webhook_overlap_seconds'`)
		h.Exec(`update autopost.settings set value = '100' where key = 'webhook_poll_ms'`)
		for n := range posts {
			h.Exec(`select autopost.enqueue_messages_and_deliveries('news', 'cms', 'api', jsonb_build_object('text', 'Post ' || $1::int))`, n)
		}
		h.Exec(`select autopost.commit_outcome('news', d.delivery_id, d.claim_token, '{"ok": true, "provider_message_id": "7"}')
			from autopost.claim_deliveries('news', 'run', 10) d, autopost.start_call('news', d.delivery_id, d.claim_token) s`)
		sender, err := webhooks.New(webhooks.Config{Store: c.db, Keys: signing{}, Interval: 50 * time.Millisecond, Log: slog.New(slog.DiscardHandler),
			Client: outbound.Guarded(outbound.GuardedConfig{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, Strict: true, MaxBytes: webhooks.MaxAnswer})})
		require.NoError(t, err)
		end := serve(t, sender.Run)
		h.Until("all events are delivered", func() bool {
			// A lease lasts 15 s longer than the timeout of a receiver; the test does not wait for that.
			h.Exec(`update autopost.webhook_sends set due_at = autopost.now_ts() where status = 'sending' and attempted_at < autopost.now_ts() - interval '2 seconds'`)
			return pgtest.Value[bool](h.DB, `select coalesce((select w.done_at > (select max(e.ts) from autopost.events e) and not exists (
				select 1 from autopost.webhook_sends s where s.status in ('pending', 'sending')) from autopost.webhook_cursors w), false)`)
		})
		end()
		require.Equal(t, []string{"delivery.sent", "delivery.sent"}, pgtest.Column[string](h.DB, `select event_type from autopost.webhook_sends where status = 'delivered' and event_type = 'delivery.sent'`))
		calls := map[string]int{}
		for _, row := range pgtest.Column[map[string]any](h.DB, `select jsonb_build_object('id', event_id, 'calls', attempt) from autopost.webhook_sends`) {
			calls[row["id"].(string)] = int(row["calls"].(float64))
		}
		received := h.World.Webhook.Events("results")
		require.Len(t, received, len(calls), "each event, and no other")
		for _, e := range received {
			require.LessOrEqual(t, e.Copies, calls[e.ID], "copies of an event are calls that were recorded")
			unknown += e.Copies - 1
		}
		h.Verified()
		return unknown
	})
}
