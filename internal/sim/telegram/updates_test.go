package telegram_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/sim/telegram"
)

// hook is a webhook with a chosen answer.
type hook struct {
	*httptest.Server
	mu      sync.Mutex
	status  int
	bodies  []map[string]any
	secrets []string
}

func newHook(t *testing.T) *hook {
	h := &hook{status: 200}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		var body map[string]any
		_ = json.Unmarshal(raw, &body)
		h.mu.Lock()
		defer h.mu.Unlock()
		h.bodies, h.secrets = append(h.bodies, body), append(h.secrets, r.Header.Get("X-Telegram-Bot-Api-Secret-Token"))
		w.WriteHeader(h.status)
	}))
	t.Cleanup(h.Close)
	return h
}

func (h *hook) answer(status int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.status = status
}

// received returns the bodies of all requests.
func (h *hook) received() []map[string]any {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]map[string]any(nil), h.bodies...)
}

func newLocal(t *testing.T, pace float64) fixture {
	t.Helper()
	core := sim.NewCore(0)
	require.NoError(t, core.Pace.Set(pace))
	s := telegram.New(core, telegram.Options{Limits: &telegram.Limits{}, Local: true})
	require.NoError(t, s.AddBot(token))
	s.AddChat(telegram.Chat{ID: channel, Title: "Demo shop"})
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	t.Cleanup(s.Close)
	return fixture{Server: s, core: core, url: server.URL}
}

func (f fixture) info(t *testing.T) (info struct {
	URL     string   `json:"url"`
	Pending int      `json:"pending_update_count"`
	Allowed []string `json:"allowed_updates"`
	Failure string   `json:"last_error_message"`
}) {
	t.Helper()
	require.NoError(t, json.Unmarshal(f.call(t, "getWebhookInfo", map[string]any{}).Result, &info))
	return info
}

func TestChangedRightsArePushedWithTheSecret(t *testing.T) {
	f, h := newLocal(t, 1), newHook(t)
	f.SetAccess(channel, telegram.AccessReadOnly)
	require.Equal(t, 1, f.info(t).Pending, "an update waits for a webhook")
	require.True(t, f.call(t, "setWebhook", map[string]any{"url": h.URL, "secret_token": "hook-secret", "allowed_updates": []string{"my_chat_member"}}).OK)
	f.Say(channel, "not subscribed")
	f.SetAccess(channel, telegram.AccessKicked)
	f.SetAccess(channel, telegram.AccessKicked)
	require.Eventually(t, func() bool { return len(h.received()) == 2 && f.info(t).Pending == 0 }, patience, time.Millisecond)
	first, second := h.received()[0], h.received()[1]
	require.Less(t, first["update_id"], second["update_id"])
	member := second["my_chat_member"].(map[string]any)
	require.Equal(t, "administrator", member["old_chat_member"].(map[string]any)["status"])
	require.Equal(t, "kicked", member["new_chat_member"].(map[string]any)["status"])
	require.Equal(t, []string{"hook-secret", "hook-secret"}, h.secrets)
	require.True(t, f.call(t, "deleteWebhook", map[string]any{}).OK)
	require.Empty(t, f.info(t).URL)
}

func TestUpdateIsRepeatedUntilItIsAccepted(t *testing.T) {
	f, h := newLocal(t, 0.001), newHook(t)
	h.answer(503)
	require.True(t, f.call(t, "setWebhook", map[string]any{"url": h.URL}).OK)
	f.Rename(channel, "Another title")
	require.Eventually(t, func() bool { return len(h.received()) > 4 }, patience, time.Millisecond)
	require.Equal(t, "Wrong response from the webhook: 503 Service Unavailable", f.info(t).Failure)
	h.answer(200)
	require.Eventually(t, func() bool { return f.info(t).Pending == 0 }, patience, time.Millisecond)
	for _, body := range h.received() {
		require.Equal(t, h.received()[0], body)
	}
	pushes := f.Pushes()
	require.Equal(t, 200, pushes[len(pushes)-1].Status)
	require.Equal(t, len(pushes), pushes[len(pushes)-1].Attempt)
}

func TestUpdateIsDroppedAfterADay(t *testing.T) {
	f, h := newLocal(t, 0.000001), newHook(t)
	h.answer(500)
	require.True(t, f.call(t, "setWebhook", map[string]any{"url": h.URL}).OK)
	f.Say(channel, "hi")
	require.Eventually(t, func() bool { return f.info(t).Pending == 0 }, patience, time.Millisecond)
	require.NotEmpty(t, f.info(t).URL, "the webhook is kept")
}

func TestGoneWebhookIsRemoved(t *testing.T) {
	f, h := newLocal(t, 0.000001), newHook(t)
	h.answer(410)
	require.True(t, f.call(t, "setWebhook", map[string]any{"url": h.URL}).OK)
	require.Eventually(t, func() bool {
		f.Say(channel, "hi")
		return f.info(t).URL == ""
	}, patience, time.Millisecond)
}
