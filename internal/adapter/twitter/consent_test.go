package twitter_test

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/adapter/twitter"
)

func TestTheConsentPageBelongsToTheBaseURL(t *testing.T) {
	for base, want := range map[string]string{
		"":                          "https://x.com/i/oauth2/authorize",
		"https://api.x.com":         "https://x.com/i/oauth2/authorize",
		"https://api.x.com/":        "https://x.com/i/oauth2/authorize",
		"https://api.twitter.com":   "https://x.com/i/oauth2/authorize",
		"http://127.0.0.1:9/x":      "http://127.0.0.1:9/x/i/oauth2/authorize",
		"http://127.0.0.1:9/x/":     "http://127.0.0.1:9/x/i/oauth2/authorize",
		"https://proxy.example.org": "https://proxy.example.org/i/oauth2/authorize",
	} {
		page, err := url.Parse(twitter.ConsentURL(base, "client", "http://127.0.0.1:1/callback", "state", "challenge"))
		require.NoError(t, err)
		query := page.Query()
		require.Equal(t, "client", query.Get("client_id"))
		require.Equal(t, "http://127.0.0.1:1/callback", query.Get("redirect_uri"))
		page.RawQuery = ""
		require.Equal(t, want, page.String(), base)
	}
}
