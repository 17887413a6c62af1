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

func TestCheckFindsWhereTheBotMayWrite(t *testing.T) {
	core := sim.NewCore(0)
	server := simulator.New(core, simulator.Options{Limits: &simulator.Limits{}})
	require.NoError(t, server.AddBot(token))
	for _, chat := range []simulator.Chat{
		{ID: -1, Title: "News"}, {ID: -2, Access: simulator.AccessReadOnly}, {ID: -3, Access: simulator.AccessMember}, {ID: -4, Access: simulator.AccessNone},
		{ID: -5, Type: "chat", Access: simulator.AccessMember},
	} {
		server.AddChat(chat)
	}
	host := httptest.NewServer(published.Inspect(t, server, published.MAX(t)))
	defer host.Close()
	client, err := outbound.Operator(outbound.OperatorConfig{})
	require.NoError(t, err)
	defer client.CloseIdleConnections()
	a, err := maxmessenger.New(maxmessenger.Config{BaseURL: host.URL, Client: client})
	require.NoError(t, err)

	targets := []string{"-1", "-2", "-3", "-4", "-5", "-99", "@news"}
	standing, failure := a.Check(t.Context(), autopost.NewSecret(token), targets)
	require.Nil(t, failure)
	require.NotEmpty(t, standing.Account)
	var may []string
	for i, right := range standing.Rights {
		require.Equal(t, targets[i], right.Target)
		require.Equal(t, right.MayPost, right.Reason == "", "%+v", right)
		if right.MayPost {
			may = append(may, right.Target)
		}
	}
	require.Len(t, standing.Rights, len(targets))
	require.Equal(t, []string{"-1", "-5"}, may)
	require.Equal(t, "News", standing.Rights[0].Title)

	_, failure = a.Check(t.Context(), autopost.NewSecret("canary-unknown"), targets)
	require.Equal(t, "max_unauthorized", failure.Code)
	require.NotContains(t, failure.String(), "canary-unknown")
}
