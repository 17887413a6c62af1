package twitter

import (
	"net/url"
	"strings"

	"autopost/internal/adapter"
)

// Scopes are what publishing and renewing need.
const Scopes = "tweet.read tweet.write users.read media.write offline.access"

// NewRefresher renews OAuth 2.0 tokens at base, where /2/oauth2/token begins. A
// refresh token is good for one use: what comes in its place must be stored before
// it is used. A bare token and the keys of OAuth 1.0a are never renewed.
func NewRefresher(base string, client adapter.Doer) adapter.TokenEndpoint {
	return adapter.TokenEndpoint{
		URL: strings.TrimRight(base, "/") + "/2/oauth2/token", Client: client,
		Revoked: []string{"invalid_request", "invalid_grant"}, RevokedCode: "x_token_revoked", AppCode: "x_unauthorized",
	}
}

// ConsentURL is where an account's owner allows the app to post. The code that
// comes of it is good for 30 seconds.
func ConsentURL(clientID, redirect, state, challenge string) string {
	return "https://x.com/i/oauth2/authorize?" + url.Values{
		"response_type": {"code"}, "client_id": {clientID}, "redirect_uri": {redirect}, "scope": {Scopes},
		"state": {state}, "code_challenge": {challenge}, "code_challenge_method": {"S256"},
	}.Encode()
}
