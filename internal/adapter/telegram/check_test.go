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

func TestCheckFindsWhereTheBotMayPost(t *testing.T) {
	core := sim.NewCore(0)
	server := simulator.New(core, simulator.Options{Limits: &simulator.Limits{}})
	require.NoError(t, server.AddBot(token))
	for _, chat := range []simulator.Chat{
		{ID: -1, Title: "News"}, {ID: -2, Access: simulator.AccessReadOnly}, {ID: -3, Access: simulator.AccessMember}, {ID: -4, Access: simulator.AccessNone},
		{ID: -5, Type: "supergroup", Access: simulator.AccessMember}, {ID: -6, Type: "supergroup", Access: simulator.AccessReadOnly},
		{ID: -7, Access: simulator.AccessKicked}, {ID: 8, Type: "private"},
	} {
		server.AddChat(chat)
	}
	host := httptest.NewServer(published.Inspect(t, server, published.Telegram(t)))
	defer host.Close()
	client, err := outbound.Operator(outbound.OperatorConfig{})
	require.NoError(t, err)
	defer client.CloseIdleConnections()
	a, err := telegram.New(telegram.Config{BaseURL: host.URL, Client: client})
	require.NoError(t, err)

	targets := []string{"-1", "-2", "-3", "-4", "-5:7", "-6", "-7", "8", "-99"}
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
	require.Equal(t, []string{"-1", "-5:7", "8"}, may)
	require.Equal(t, "News", standing.Rights[0].Title)
	for _, entry := range core.Log.Entries() {
		require.Contains(t, []string{"getMe", "getChat", "getChatMember"}, entry.Method, "nothing is changed")
	}

	_, failure = a.Check(t.Context(), autopost.NewSecret("7001001:AAunknownToken000000000000000000000000"), targets)
	require.Equal(t, autopost.Permanent, failure.Category)
	require.NotContains(t, failure.String(), "unknownToken")
}
