package credential_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/credential"
)

func TestShapeErrorNamesTheFieldAndTheFix(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		platform autopost.Platform
		text     string
		want     string // "" if the secret is valid
	}{
		{"telegram", "123456789:AAcanary-TOKEN_of-thirty-five-chars", ""},
		{"telegram", "canary", "bot token must have the form"},
		{"telegram", "123456789:AAcanary TOKEN", "@BotFather"},
		{"max", "f9LHod-canary", ""},
		{"max", "canary with spaces", "bot token contains spaces"},
		{"x", "canary-bare-token", ""},
		{"x", "canary bare", "access token contains spaces"},
		{"x", `{"access_token": "canary"}`, ""},
		{"x", `{"client_id": "a", "refresh_token": "canary"}`, ""},
		{"x", `{"a": 1}`, `access_token is missing or not text: write it like {"access_token": "…"}`},
		{"x", `{"refresh_token": "canary"}`, "client_id is missing"},
		{"x", `{"consumer_key": "canary", "consumer_secret": "b", "access_token": "c"}`, "access_token_secret is missing"},
		{"x", `{"canary`, "secret is not a JSON object"},
		{"youtube", `{"client_id": "a", "client_secret": "b", "refresh_token": "canary"}`, ""},
		{"youtube", `{"client_id": "a", "client_secret": "canary"}`, "refresh_token is missing"},
		{"youtube", "canary", "secret is not a JSON object"},
		{"youtube", `{"client_id": "a", "client_secret": "b", "refresh_token": "can\nary"}`, "refresh_token contains spaces"},
		{"webhook", "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=", ""},
		{"webhook", "whsec_canary", "signing secret"},
		{"mastodon", "canary", ""},
		{"mastodon", " \n", "secret is empty"},
	} {
		err := credential.CheckShape(c.platform, autopost.NewSecret(c.text))
		if c.want == "" {
			require.NoError(t, err, c.text)
			continue
		}
		require.ErrorContains(t, err, c.want, c.text)
		require.False(t, strings.Contains(err.Error(), "canary"), err.Error())
	}
}
