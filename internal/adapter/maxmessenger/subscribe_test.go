package maxmessenger_test

import (
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/adapter/adaptertest/published"
	"autopost/internal/adapter/maxmessenger"
	"autopost/internal/outbound"
	"autopost/internal/sim"
	simulator "autopost/internal/sim/maxmessenger"
)

func TestSubscriptionIsReadAndSet(t *testing.T) {
	server := simulator.New(sim.NewCore(0), simulator.Options{Limits: &simulator.Limits{}})
	defer server.Close()
	require.NoError(t, server.AddBot(token))
	host := httptest.NewServer(published.Inspect(t, server, published.MAX(t)))
	defer host.Close()
	client, err := outbound.Operator(outbound.OperatorConfig{})
	require.NoError(t, err)
	defer client.CloseIdleConnections()
	a, err := maxmessenger.New(maxmessenger.Config{BaseURL: host.URL, Client: client})
	require.NoError(t, err)

	bot, hook := autopost.NewSecret(token), autopost.NewSecret("canary-hook-secret")
	want := autopost.Subscription{URL: "https://example.org/hooks/max", Updates: a.Updates()}
	require.Nil(t, a.Subscribe(t.Context(), bot, autopost.Subscription{URL: "https://example.org/elsewhere", Updates: a.Updates()}, hook))
	seen, failure := a.Subscription(t.Context(), bot, want.URL)
	require.Nil(t, failure)
	require.Equal(t, autopost.Subscription{}, seen, "another URL is another subscription")
	require.Nil(t, a.Subscribe(t.Context(), bot, want, hook))
	seen, failure = a.Subscription(t.Context(), bot, want.URL)
	require.Nil(t, failure)
	require.Equal(t, want, seen)

	failure = a.Subscribe(t.Context(), bot, autopost.Subscription{URL: "http://example.org/hook", Updates: a.Updates()}, hook)
	require.Equal(t, autopost.Permanent, failure.Category)
	for _, wrong := range []string{"", "no\nheader", "unknown-token"} {
		failure = a.Subscribe(t.Context(), autopost.NewSecret(wrong), want, hook)
		require.Equal(t, autopost.Permanent, failure.Category, wrong)
		_, failure = a.Subscription(t.Context(), autopost.NewSecret(wrong), want.URL)
		require.Equal(t, autopost.Permanent, failure.Category, wrong)
		require.NotContains(t, failure.String(), "unknown-token")
	}
}

// A bot without a subscription reads its waiting updates.
func TestWaitingUpdatesAreRead(t *testing.T) {
	server := simulator.New(sim.NewCore(0), simulator.Options{Limits: &simulator.Limits{}})
	defer server.Close()
	require.NoError(t, server.AddBot(token))
	host := httptest.NewServer(published.Inspect(t, server, published.MAX(t)))
	defer host.Close()
	client, err := outbound.Operator(outbound.OperatorConfig{})
	require.NoError(t, err)
	defer client.CloseIdleConnections()
	a, err := maxmessenger.New(maxmessenger.Config{BaseURL: host.URL, Client: client})
	require.NoError(t, err)
	bot := autopost.NewSecret(token)
	server.AddChat(simulator.Chat{ID: -5, Title: "City", Type: "chat"})
	for range 1001 {
		server.Say(-5, "hello")
	}
	first, next, failure := a.Poll(t.Context(), bot, "")
	require.Nil(t, failure)
	require.Len(t, first, 1000)
	second, last, failure := a.Poll(t.Context(), bot, next)
	require.Nil(t, failure)
	require.Len(t, second, 1)
	require.Empty(t, last)
	_, _, failure = a.Poll(t.Context(), autopost.NewSecret("unknown-token"), "")
	require.Equal(t, autopost.Permanent, failure.Category)
}
