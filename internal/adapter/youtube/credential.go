package youtube

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/url"
	"strings"

	"autopost"
	"autopost/internal/adapter"
)

// key is a channel's credential. Calls need the access token alone; who renews it is
// told by [NewRefresher].
type key struct {
	ClientSecret string `json:"client_secret"`
	RefreshToken string `json:"refresh_token"`
	AccessToken  string `json:"access_token"`
}

// readKey never quotes the secret in its error.
func readKey(secret autopost.Secret) (key, error) {
	var k key
	switch {
	case json.Unmarshal([]byte(secret.Reveal()), &k) != nil:
		return key{}, errors.New("the credential is no JSON object of strings")
	case k.AccessToken == "":
		return key{}, errors.New("access_token is missing: link the channel anew")
	case strings.ContainsFunc(k.AccessToken, func(r rune) bool { return r <= ' ' || r > '~' }):
		return key{}, errors.New("the access_token has characters that no header may hold")
	}
	return k, nil
}

// secrets are what must not be told of a credential.
func (k key) secrets(whole autopost.Secret) []autopost.Secret {
	return []autopost.Secret{whole, autopost.NewSecret(k.ClientSecret), autopost.NewSecret(k.RefreshToken), autopost.NewSecret(k.AccessToken)}
}

// lasting is what stays of a credential while access tokens come and go.
func (k key) lasting() string { return cmp.Or(k.RefreshToken, k.AccessToken) }

// Scopes are what publishing and its checks need.
const Scopes = "https://www.googleapis.com/auth/youtube.upload https://www.googleapis.com/auth/youtube.force-ssl"

// NewRefresher renews access tokens at Google's token endpoint. The refresh token stays.
func NewRefresher(tokenURL string, client adapter.Doer) adapter.TokenEndpoint {
	return adapter.TokenEndpoint{
		URL: tokenURL, Client: client, SecretInForm: true,
		Revoked: []string{"invalid_grant"}, RevokedCode: "yt_invalid_grant", AppCode: codeUnauthorized,
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
