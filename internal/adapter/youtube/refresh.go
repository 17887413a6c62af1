package youtube

import (
	"net/url"

	"autopost/internal/adapter"
)

// Scopes are what publishing and its checks need.
const Scopes = "https://www.googleapis.com/auth/youtube.upload https://www.googleapis.com/auth/youtube.force-ssl"

// NewRefresher renews access tokens at Google's token endpoint. The refresh token stays.
func NewRefresher(tokenURL string, client adapter.Doer) adapter.TokenEndpoint {
	return adapter.TokenEndpoint{
		URL: tokenURL, Client: client, SecretInForm: true,
		Revoked: []string{"invalid_grant"}, RevokedCode: "yt_invalid_grant", AppCode: "yt_unauthorized",
	}
}

// ConsentURL is where a channel's owner allows the app to publish, and chooses the
// channel. Google gives a refresh token only where it is asked for consent anew.
func ConsentURL(clientID, redirect, state, challenge string) string {
	return "https://accounts.google.com/o/oauth2/v2/auth?" + url.Values{
		"response_type": {"code"}, "client_id": {clientID}, "redirect_uri": {redirect}, "scope": {Scopes}, "state": {state},
		"code_challenge": {challenge}, "code_challenge_method": {"S256"}, "access_type": {"offline"}, "prompt": {"consent"},
	}.Encode()
}
