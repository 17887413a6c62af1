package maxmessenger_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/sim/maxmessenger"
)

// hook is a subscriber with a chosen answer.
type hook struct {
	*httptest.Server
	mu       sync.Mutex
	status   int
	received []string
	secret   string
}

func newHook(t *testing.T, status int) *hook {
	h := &hook{status: status}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		var body struct {
			Type string `json:"update_type"`
		}
		_ = json.Unmarshal(raw, &body)
		h.mu.Lock()
		defer h.mu.Unlock()
		h.received, h.secret = append(h.received, body.Type), r.Header.Get("X-Max-Bot-Api-Secret")
		w.WriteHeader(h.status)
	}))
	t.Cleanup(h.Close)
	return h
}

func (h *hook) types() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.received...)
}

func newSubscribed(t *testing.T, pace float64, h *hook) fixture {
	t.Helper()
	core := sim.NewCore(0)
	require.NoError(t, core.Pace.Set(pace))
	f := fixture{core: core, Server: maxmessenger.New(core, maxmessenger.Options{Limits: &maxmessenger.Limits{}, AnyHook: true})}
	t.Cleanup(f.Close)
	require.NoError(t, f.AddBot(token))
	f.AddChat(maxmessenger.Chat{ID: channel, Title: "Demo shop"})
	require.JSONEq(t, `{"success":true}`, string(f.do("POST", "/subscriptions",
		fmt.Sprintf(`{"url":%q,"update_types":["bot_added","bot_removed","chat_title_changed"],"secret":"hook-secret"}`, h.URL)).body))
	return f
}

func (f fixture) subscribed(t *testing.T) int {
	t.Helper()
	var list struct {
		Subscriptions []struct {
			Types []string `json:"update_types"`
		} `json:"subscriptions"`
	}
	f.do("GET", "/subscriptions", "").into(t, &list)
	return len(list.Subscriptions)
}

func TestChangedMembershipIsPushedWithTheSecret(t *testing.T) {
	h := newHook(t, 200)
	f := newSubscribed(t, 1, h)
	f.SetAccess(channel, maxmessenger.AccessNone)
	f.Say(channel, "not subscribed")
	f.SetAccess(channel, maxmessenger.AccessReadOnly)
	f.SetAccess(channel, maxmessenger.AccessAdmin) // causes no update
	f.Rename(channel, "Another title")
	require.Eventually(t, func() bool { return len(h.types()) == 3 }, patience, time.Millisecond)
	require.Equal(t, []string{"bot_removed", "bot_added", "chat_title_changed"}, h.types())
	require.Equal(t, "hook-secret", h.secret)
	f.do("POST", "/subscriptions", fmt.Sprintf(`{"url":%q}`, h.URL))
	require.Equal(t, 1, f.subscribed(t), "the same URL is the same subscription")
	require.JSONEq(t, `{"success":true}`, string(f.do("DELETE", "/subscriptions?url="+h.URL, "").body))
	require.Zero(t, f.subscribed(t))
	require.JSONEq(t, `{"success":false,"message":"Subscription not found"}`, string(f.do("DELETE", "/subscriptions?url="+h.URL, "").body))
}

func TestSubscriptionEndsAfterLongFailure(t *testing.T) {
	h := newHook(t, 503)
	f := newSubscribed(t, 0.00005, h)
	f.Rename(channel, "Another title")
	require.Eventually(t, func() bool { return f.subscribed(t) == 0 }, patience, time.Millisecond)
	pushes := f.Pushes()
	require.Greater(t, len(pushes), 5)
	for i, p := range pushes {
		require.Equal(t, i+1, p.Attempt)
		require.Equal(t, 503, p.Status)
	}
}

func TestSubscriptionsNeedHTTPS(t *testing.T) {
	f := newFixture(t, maxmessenger.Limits{})
	f.do("POST", "/subscriptions", `{"url":"http://example.org/hook"}`).refused(t, 400, "proto.payload", "Webhook URL must use https on port 443")
	f.do("POST", "/subscriptions", `{"url":"https://example.org:8443/hook"}`).refused(t, 400, "proto.payload", "Webhook URL must use https on port 443")
	f.do("POST", "/subscriptions", `{"url":"https://example.org/hook","secret":"a b"}`).refused(t, 400, "proto.payload", "Invalid secret")
	require.Equal(t, 200, f.do("POST", "/subscriptions", `{"url":"https://example.org/hook"}`).status)
}
