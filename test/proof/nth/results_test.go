package nth

import (
	"context"
	"log/slog"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/outbound"
	"autopost/internal/pg"
	"autopost/internal/pgtest"
	"autopost/internal/results"
	"autopost/test/house"
)

// outgoing are the calls of who tells the outside what became of posts.
type outgoing struct{ *calls }

func (o outgoing) ReadyWebhookWorkspaces(ctx context.Context, limit int) ([]string, error) {
	return through(o.calls, "ready_webhook_workspaces", func() ([]string, error) { return o.db.ReadyWebhookWorkspaces(ctx, limit) })
}

func (o outgoing) EnqueueWebhooks(ctx context.Context, workspace string) (bool, error) {
	return through(o.calls, "enqueue_webhooks", func() (bool, error) { return o.db.EnqueueWebhooks(ctx, workspace) })
}

func (o outgoing) ClaimWebhooks(ctx context.Context, workspace string, limit int) ([]results.Call, error) {
	return through(o.calls, "claim_webhooks", func() ([]results.Call, error) {
		list, err := o.db.ClaimWebhooks(ctx, workspace, limit)
		return convert(list, func(c pg.WebhookCall) results.Call {
			return results.Call{WebhookID: c.WebhookID, EventID: c.EventID, ClaimToken: c.ClaimToken, URL: c.URL, AuthRefs: c.AuthRefs,
				Timeout: time.Duration(c.TimeoutMS) * time.Millisecond, Body: c.Body}
		}), err
	})
}

func (o outgoing) CommitWebhooks(ctx context.Context, workspace string, told []results.Told) error {
	return done(o.calls, "commit_webhook_batch", func() error {
		outcomes := make([]pg.WebhookOutcome, len(told))
		for i, t := range told {
			outcomes[i].WebhookID, outcomes[i].EventID, outcomes[i].ClaimToken = t.Call.WebhookID, t.Call.EventID, t.Call.ClaimToken
			outcomes[i].Outcome.HTTPStatus, outcomes[i].Outcome.Error = t.Outcome.HTTPStatus, t.Outcome.Error
		}
		return o.db.CommitWebhookBatch(ctx, workspace, outcomes)
	})
}

const signingKey = "whsec_bnRoLWNhbmFyeS1zaWduaW5nLWtleS0t"

type signing struct{}

func (signing) Open(context.Context, string, string) (autopost.Secret, error) {
	return autopost.NewSecret(signingKey), nil
}

// A receiver is told each event, whichever call fails, under the one id of the event, and no
// more often than calls were recorded.
func TestTheNthCallOfResultsFails(t *testing.T) {
	t.Parallel()
	everyCall(t, 6, func(t *testing.T, h *house.House, c *calls) (doubts int) {
		const posts = 2
		require.NoError(t, h.World.Webhook.AddEndpoint("results", signingKey))
		h.Channel("news", house.Channel{ID: "channel", Platform: house.Telegram, Parallel: posts})
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
		teller, err := results.New(results.Config{Queue: outgoing{c}, Keys: signing{}, Interval: 50 * time.Millisecond, Log: slog.New(slog.DiscardHandler),
			Client: outbound.Guarded(outbound.GuardedConfig{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, Strict: true, MaxBytes: results.MaxAnswer})})
		require.NoError(t, err)
		end := serve(t, teller.Run)
		h.Until("all is told", patience, func() bool {
			// A lease goes on for 15 s after the time that a receiver has; whoever is silent for so long is given up here.
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
		told := h.World.Webhook.Events("results")
		require.Len(t, told, len(calls), "each event, and no other")
		for _, e := range told {
			require.LessOrEqual(t, e.Copies, calls[e.ID], "copies of an event are calls that were recorded")
			doubts += e.Copies - 1
		}
		h.Verified()
		return doubts
	})
}
