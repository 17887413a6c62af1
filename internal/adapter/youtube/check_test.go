package youtube_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"autopost"
	simyoutube "autopost/internal/sim/youtube"
)

func TestCheckSaysForWhichChannelACredentialSpeaks(t *testing.T) {
	b := newBench(t)
	targets := []string{channelID, "UCmore-channel", "@demo"}
	standing, failure := b.adapter.Check(t.Context(), autopost.NewSecret(b.secret), targets)
	require.Nil(t, failure)
	require.Equal(t, "Demo", standing.Account)
	require.Equal(t, []autopost.Right{
		{Target: channelID, Title: "Demo", MayPost: true},
		{Target: "UCmore-channel", Reason: "the credential speaks for UCdemo-channel: correct the target, or link that channel"},
		{Target: "@demo", Reason: "the target is no channel id: correct it, it begins with UC"},
	}, standing.Rights)
	require.Empty(t, b.methods(), "nothing is asked but whose it is")
	require.Equal(t, 1, b.count("GET /youtube/v3/channels"))

	b.server.ExpireTokens()
	_, failure = b.adapter.Check(t.Context(), autopost.NewSecret(b.secret), targets)
	require.Equal(t, "yt_unauthorized", failure.Code, "it is asked anew each time")
	b.keepsSecrets(failure)
	b.grant(simyoutube.ScopeUpload)
	_, failure = b.adapter.Check(t.Context(), autopost.NewSecret(b.secret), targets)
	require.Equal(t, "yt_insufficient_permissions", failure.Code)
	_, failure = b.adapter.Check(t.Context(), autopost.NewSecret(`{"refresh_token":"1//canary"}`), targets)
	require.Equal(t, "yt_unauthorized", failure.Code)
	require.NotContains(t, failure.String(), "canary")
}
