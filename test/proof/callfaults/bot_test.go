package callfaults

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
	shop "autopost/internal/bot"
	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

// customers are the platform of a bot; it keeps what its dialogs get.
type customers struct {
	mu  sync.Mutex
	got map[string][]string
}

func (*customers) Platform() autopost.Platform { return autopost.MAX }

func (p *customers) Send(_ context.Context, call autopost.Call) autopost.Outcome {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.got[call.Delivery.TargetID] = append(p.got[call.Delivery.TargetID], call.Delivery.RenderedText)
	return autopost.Sent(fmt.Sprint("mid.", len(p.got), ".", len(p.got[call.Delivery.TargetID])), time.Time{}, nil)
}

func (*customers) Credential(context.Context, string, string, autopost.Platform) (autopost.Secret, error) {
	return autopost.NewSecret("token"), nil
}

func (*customers) Renew(context.Context, autopost.Delivery, autopost.Secret, autopost.Error) (autopost.Secret, error) {
	return autopost.Secret{}, nil
}

func (*customers) MaterialsFor(autopost.Delivery) autopost.MediaAccess { return nil }

// botCalls change something; a failed read is repeated by the next poll.
var botCalls = []string{"bot_claim_replies", "bot_start_reply", "bot_commit_reply", "bot_recover", "bot_release_lost", "receive_update"}

// Each message is answered once, in the order of its dialog, whichever call fails. A second copy follows a recorded unknown
// outcome only.
func TestTheShopBotSurvivesAnyFailedCall(t *testing.T) {
	t.Parallel()
	everyCall(t, 3, botCalls, func(t *testing.T, h *harness.Harness, c *calls) (unknown int) {
		h.Channel("news", harness.Channel{ID: "channel", Platform: harness.MAX})
		h.Endpoint("news", "bot", "secret-bot")
		h.Exec(`update autopost.workspace_endpoints set kind = 'bot_webhook', meta = '{"auth_ref": "max"}' where endpoint_id = 'bot'`)
		h.Exec(`update autopost.platforms set settle_seconds = 0`)
		h.Exec(`select autopost.put_bot_rule('news', 'echo', '{"keywords": ["question"], "response_template": "Answer to {text}"}', 'test', 'test', false)`)
		platform := &customers{got: map[string][]string{}}
		w, err := shop.New(shop.Config{
			RunID: "bot", Store: c.db, Credentials: platform, Media: platform, Adapters: map[autopost.Platform]autopost.Adapter{autopost.MAX: platform},
			Heartbeats: true, Interval: 200 * time.Millisecond, RecoverInterval: 200 * time.Millisecond, AdapterTimeout: 2 * time.Second, Log: slog.New(slog.DiscardHandler),
		})
		require.NoError(t, err)
		end := serve(t, w.Run)
		want := []string{}
		for q := range 2 {
			for chat := range 2 {
				update := json.RawMessage(fmt.Sprintf(`{"update_type": "message_created", "timestamp": %d, "message": {"recipient": {"chat_id": %d, "chat_type": "dialog"},
					"body": {"mid": "mid.in.%[1]d.%[2]d", "text": "question %[1]d"}, "sender": {"user_id": 7}}}`, q, 5000+chat))
				h.Until("the platform gets an answer", func() bool { // it repeats the update until then
					_, err := c.db.ReceiveUpdate(t.Context(), "news", "bot", update)
					return err == nil
				})
			}
			want = append(want, fmt.Sprint("Answer to question ", q))
		}
		h.UntilTrue(`select count(*) filter (where status = 'sent') = 4 from autopost.bot_outbox`)
		end()
		for chat, got := range platform.got {
			require.Equal(t, want, slices.Compact(slices.Clone(got)), "chat %s", chat)
			unknown += len(got) - len(want)
		}
		require.Len(t, platform.got, 2)
		require.LessOrEqual(t, unknown, pgtest.Value[int](h.DB, `select sum(unknown_outcomes)::int from autopost.bot_outbox`))
		h.Verified()
		return unknown
	})
}
