package youtube_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"autopost"
	simyoutube "autopost/internal/sim/youtube"
)

func TestCheckReturnsTheChannelOfACredential(t *testing.T) {
	b := newBench(t)
	targets := []string{channelID, "UCmore-channel", "@demo"}
	standing, failure := b.adapter.Check(t.Context(), autopost.NewSecret(b.secret), targets)
	require.Nil(t, failure)
	require.Equal(t, "Demo", standing.Account)
	require.Equal(t, []autopost.Right{
		{Target: channelID, Title: "Demo", MayPost: true},
		{Target: "UCmore-channel", Reason: "the credential belongs to UCdemo-channel: correct the target, or link the other channel"},
		{Target: "@demo", Reason: "the target must be a channel id, which begins with UC: correct it"},
	}, standing.Rights)
	require.Empty(t, b.methods(), "only the account is requested")
	require.Equal(t, 1, b.count("GET /youtube/v3/channels"))

	b.server.ExpireTokens()
	_, failure = b.adapter.Check(t.Context(), autopost.NewSecret(b.secret), targets)
	require.Equal(t, "yt_unauthorized", failure.Code, "each check asks again")
	b.keepsSecrets(failure)
	b.grant(simyoutube.ScopeUpload)
	_, failure = b.adapter.Check(t.Context(), autopost.NewSecret(b.secret), targets)
	require.Equal(t, "yt_insufficient_permissions", failure.Code)
	_, failure = b.adapter.Check(t.Context(), autopost.NewSecret(`{"refresh_token":"1//canary"}`), targets)
	require.Equal(t, "yt_unauthorized", failure.Code)
	require.NotContains(t, failure.String(), "canary")
}
