package telegram_test

import (
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/adapter/adaptertest/published"
	"autopost/internal/adapter/telegram"
	"autopost/internal/outbound"
	"autopost/internal/sim"
	simulator "autopost/internal/sim/telegram"
)

func TestWebhookIsReadAndSet(t *testing.T) {
	core := sim.NewCore(0)
	server := simulator.New(core, simulator.Options{Limits: &simulator.Limits{}})
	defer server.Close()
	require.NoError(t, server.AddBot(token))
	host := httptest.NewServer(published.Inspect(t, server, published.Telegram(t)))
	defer host.Close()
	client, err := outbound.Operator(outbound.OperatorConfig{})
	require.NoError(t, err)
	defer client.CloseIdleConnections()
	a, err := telegram.New(telegram.Config{BaseURL: host.URL, Client: client})
	require.NoError(t, err)

	bot, hook := autopost.NewSecret(token), autopost.NewSecret("canary-hook-secret")
	want := autopost.Subscription{URL: "https://example.org/hooks/telegram", Updates: a.Updates()}
	seen, failure := a.Subscription(t.Context(), bot, want.URL)
	require.Nil(t, failure)
	require.Equal(t, autopost.Subscription{}, seen)
	require.Nil(t, a.Subscribe(t.Context(), bot, want, hook))
	seen, failure = a.Subscription(t.Context(), bot, want.URL)
	require.Nil(t, failure)
	require.Equal(t, want, seen)
	require.Contains(t, want.Updates, "my_chat_member")

	failure = a.Subscribe(t.Context(), bot, autopost.Subscription{URL: "http://example.org/canary-hook-secret", Updates: a.Updates()}, hook)
	require.Equal(t, autopost.Permanent, failure.Category)
	require.Contains(t, failure.Message, "HTTPS")
	failure = a.Subscribe(t.Context(), autopost.NewSecret("7001001:AAunknownToken000000000000000000000000"), want, hook)
	require.NotContains(t, failure.String(), "unknownToken")
	require.NotContains(t, failure.String(), "canary")
}

// A bot without a webhook reads its waiting updates. Only a full page makes Telegram forget the earlier ones.
func TestWaitingUpdatesAreRead(t *testing.T) {
	server := simulator.New(sim.NewCore(0), simulator.Options{Limits: &simulator.Limits{}, Local: true})
	defer server.Close()
	require.NoError(t, server.AddBot(token))
	host := httptest.NewServer(published.Inspect(t, server, published.Telegram(t)))
	defer host.Close()
	client, err := outbound.Operator(outbound.OperatorConfig{})
	require.NoError(t, err)
	defer client.CloseIdleConnections()
	a, err := telegram.New(telegram.Config{BaseURL: host.URL, Client: client})
	require.NoError(t, err)
	bot := autopost.NewSecret(token)
	server.AddChat(simulator.Chat{ID: -5, Title: "City"})
	for range 103 {
		server.Say(-5, "hello")
	}
	first, next, failure := a.Poll(t.Context(), bot, "")
	require.Nil(t, failure)
	require.Len(t, first, 100)
	second, last, failure := a.Poll(t.Context(), bot, next)
	require.Nil(t, failure)
	require.Len(t, second, 3)
	require.Empty(t, last)
	again, _, failure := a.Poll(t.Context(), bot, "")
	require.Nil(t, failure)
	require.Equal(t, second, again, "a page that is not full stays")
	require.Nil(t, a.Subscribe(t.Context(), bot, autopost.Subscription{URL: "http://127.0.0.1:9/", Updates: a.Updates()}, autopost.NewSecret("hook")))
	_, _, failure = a.Poll(t.Context(), bot, "")
	require.Equal(t, "tg_conflict", failure.Code)
}
