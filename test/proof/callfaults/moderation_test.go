package callfaults

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/monitor"
	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

// moderators are a chat that keeps what it is sent.
type moderators struct {
	mu sync.Mutex
	// buttons are the data of the buttons of each message, and copies counts the sends, by the id of the call.
	buttons map[string][]autopost.PressButton
	copies  map[string]int
	// texts are the present messages by their ids, and answers those to presses.
	texts   map[string]string
	answers map[string]string
}

func (m *moderators) Moderate(_ context.Context, _ string, c autopost.ModerationCall) autopost.Outcome {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch c.Kind {
	case autopost.ModerationAnswer:
		m.answers[c.CallbackID] = c.Text
	case autopost.ModerationClose:
		for _, id := range c.ProviderIDs {
			m.texts[id] = c.Text
		}
	case autopost.ModerationAsk:
		m.copies[c.ID]++
		id := strconv.Itoa(len(m.texts) + 1)
		m.texts[id], m.buttons[c.ID] = c.Text, c.Buttons
		return autopost.Sent(id, time.Time{}, nil)
	}
	return autopost.Outcome{OK: true}
}

// press is the update of a pressed button of the first message.
func (m *moderators) press(button int) json.RawMessage {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, buttons := range m.buttons {
		return json.RawMessage(fmt.Sprintf(`{"update_id": 1, "callback_query": {"id": "cb", "data": %q, "from": {"id": 5001, "first_name": "Olga"},
			"message": {"message_id": 1, "chat": {"id": -1001, "type": "channel"}}}}`, buttons[button].Data))
	}
	return nil
}

var moderationCalls = []string{"ready_moderation_workspaces", "claim_moderation", "finish_moderation", "receive_update"}

// A post is decided on once, the chat shows it, and the person gets an answer, whichever call fails.
func TestDecisionsInChatsSurviveAnyFailedCall(t *testing.T) {
	t.Parallel()
	everyCall(t, 3, moderationCalls, func(t *testing.T, h *harness.Harness, c *calls) (unknown int) {
		h.Channel("news", harness.Channel{ID: "channel", Platform: harness.Telegram})
		h.Endpoint("news", "cms", "secret-cms")
		h.Endpoint("news", "bot", "secret-bot")
		h.Exec(`update autopost.workspace_endpoints set kind = 'bot_webhook', meta = '{"auth_ref": "telegram"}' where endpoint_id = 'bot'`)
		h.Exec(`update autopost.workspace_endpoints set moderated = true where endpoint_id = 'cms'`)
		h.Exec(`update autopost.settings set value = '1' where key = 'alert_lease_seconds'`)
		require.Equal(t, "true", pgtest.Value[string](h.DB, `select autopost.put_moderation_chat('news', 'mods', '{"auth_ref": "telegram", "target_id": "-1001"}', 'ann', 'test', false) ->> 'applied'`))
		h.Exec(`select autopost.receive_push('news', 'cms', '[{"text": "Hello"}]')`)
		chat := &moderators{buttons: map[string][]autopost.PressButton{}, copies: map[string]int{}, texts: map[string]string{}, answers: map[string]string{}}
		m, err := monitor.New(monitor.Config{Interval: 200 * time.Millisecond, RunID: "monitor"}, monitor.Deps{
			Store: c.db, Bucket: idle{}, Renewer: idle{}, Disks: idle{}, Notifier: &operators{got: map[string]int{}}, Moderator: chat, Log: slog.New(slog.DiscardHandler),
		})
		require.NoError(t, err)
		end := serve(t, m.Run)
		h.UntilTrue(`select count(*) = 1 from autopost.moderation_messages where status = 'open'`)
		h.Until("the platform gets an answer", func() bool { // it repeats the update until then
			_, err := c.db.ReceiveUpdate(t.Context(), "news", "bot", chat.press(0))
			return err == nil
		})
		h.UntilTrue(`select (select status from autopost.moderation_messages) = 'closed' and (select status from autopost.moderation_presses) = 'answered'`)
		end()
		require.Equal(t, map[string]string{"cb": "Approved."}, chat.answers)
		require.Equal(t, 1, pgtest.Value[int](h.DB, `select count(*)::int from autopost.approvals`))
		require.Equal(t, 1, pgtest.Value[int](h.DB, `select count(*)::int from autopost.deliveries`))
		require.Contains(t, chat.texts["1"], "Approved by Olga")
		for _, copies := range chat.copies {
			require.LessOrEqual(t, copies, 2)
			unknown += copies - 1
		}
		h.Verified()
		return unknown
	})
}
