package youtube_test

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/adapter/youtube"
)

func TestTheConsentPageBelongsToTheTokenEndpoint(t *testing.T) {
	for token, want := range map[string]string{
		"":                                 "https://accounts.google.com/o/oauth2/v2/auth",
		youtube.DefaultTokenURL:            "https://accounts.google.com/o/oauth2/v2/auth",
		"http://127.0.0.1:9/google/token":  "http://127.0.0.1:9/google/o/oauth2/v2/auth",
		"https://proxy.example.org/token":  "https://proxy.example.org/o/oauth2/v2/auth",
		"https://proxy.example.org/google": "https://proxy.example.org/google/o/oauth2/v2/auth",
	} {
		page, err := url.Parse(youtube.ConsentURL(token, "client", "http://127.0.0.1:1/callback", "state", "challenge"))
		require.NoError(t, err)
		query := page.Query()
		require.Equal(t, []string{"client", "offline", "consent"}, []string{query.Get("client_id"), query.Get("access_type"), query.Get("prompt")})
		page.RawQuery = ""
		require.Equal(t, want, page.String(), token)
	}
}
