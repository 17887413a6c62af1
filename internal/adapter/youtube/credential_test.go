package youtube_test

import (
	"encoding/json"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/adapter/youtube"
	"autopost/internal/outbound"
	"autopost/internal/sim"
	simulator "autopost/internal/sim/youtube"
)

func TestRefreshKeepsTheRefreshToken(t *testing.T) {
	server := simulator.New(sim.NewCore(0), simulator.Options{})
	require.NoError(t, server.AddProject(simulator.Project{ID: "p", ClientID: "client", ClientSecret: "canary-hush"}))
	require.NoError(t, server.AddChannel(simulator.Channel{ID: "UCdemo-channel"}))
	refresh, err := server.Grant("p", "UCdemo-channel", simulator.ScopeAll)
	require.NoError(t, err)
	host := httptest.NewServer(server.Tokens())
	defer host.Close()
	client, err := outbound.Operator(outbound.OperatorConfig{})
	require.NoError(t, err)
	defer client.CloseIdleConnections()
	refresher := youtube.NewRefresher(host.URL, client)
	text, err := json.Marshal(map[string]string{"client_id": "client", "client_secret": "canary-hush", "refresh_token": refresh})
	require.NoError(t, err)
	secret := autopost.NewSecret(string(text))
	require.Equal(t, autopost.RenewFirst, refresher.Renewal(secret))

	for range 2 {
		renewed, failure := refresher.Refresh(t.Context(), secret)
		require.Nil(t, failure)
		require.Equal(t, 3599*time.Second, renewed.ValidFor)
		var got map[string]string
		require.NoError(t, json.Unmarshal([]byte(renewed.Secret.Reveal()), &got))
		require.Equal(t, refresh, got["refresh_token"], "an answer without a refresh token keeps the old one")
		require.NotEmpty(t, got["access_token"])
		require.Equal(t, autopost.RenewLater, refresher.Renewal(renewed.Secret))
		secret = renewed.Secret
	}
	server.Disconnect("UCdemo-channel")
	_, failure := refresher.Refresh(t.Context(), secret)
	require.Equal(t, "yt_invalid_grant", failure.Code)
	require.Equal(t, autopost.Permanent, failure.Category)
	out, err := json.Marshal(failure)
	require.NoError(t, err)
	require.NotContains(t, string(out), refresh)
	require.NotContains(t, string(out), "canary")
}
