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

// key is the credential of a channel. Calls need only the access token; [NewRefresher] renews it.
type key struct {
	ClientSecret string `json:"client_secret"`
	RefreshToken string `json:"refresh_token"`
	AccessToken  string `json:"access_token"`
}

// readKey reads a credential. Its error never contains the secret.
func readKey(secret autopost.Secret) (key, error) {
	var k key
	switch {
	case json.Unmarshal([]byte(secret.Reveal()), &k) != nil:
		return key{}, errors.New("the credential must be a JSON object of strings")
	case k.AccessToken == "":
		return key{}, errors.New("access_token is missing: link the channel again")
	case strings.ContainsFunc(k.AccessToken, func(r rune) bool { return r <= ' ' || r > '~' }):
		return key{}, errors.New("access_token has characters that a header must not have")
	}
	return k, nil
}

// secrets are the parts of a credential to redact.
func (k key) secrets(whole autopost.Secret) []autopost.Secret {
	return []autopost.Secret{whole, autopost.NewSecret(k.ClientSecret), autopost.NewSecret(k.RefreshToken), autopost.NewSecret(k.AccessToken)}
}

// lasting is the part of a credential that renewals do not change.
func (k key) lasting() string { return cmp.Or(k.RefreshToken, k.AccessToken) }

// Scopes are the scopes that publishing and its checks need.
const Scopes = "https://www.googleapis.com/auth/youtube.upload https://www.googleapis.com/auth/youtube.force-ssl"

// NewRefresher returns a refresher of access tokens. The refresh token does not change.
func NewRefresher(tokenURL string, client adapter.Doer) adapter.TokenEndpoint {
	return adapter.TokenEndpoint{
		URL: tokenURL, Client: client, SecretInForm: true,
		Revoked: []string{"invalid_grant"}, RevokedCode: "yt_invalid_grant", AppCode: codeUnauthorized,
	}
}

// DefaultTokenURL is Google's token endpoint.
const DefaultTokenURL = "https://oauth2.googleapis.com/token"

// ConsentURL is the page on which the owner of a channel chooses it and allows the app to publish.
// Google gives a refresh token only with prompt=consent. Beside a token endpoint that is not Google's
// own, the page is at o/oauth2/v2/auth.
func ConsentURL(tokenURL, clientID, redirect, state, challenge string) string {
	page := "https://accounts.google.com/"
	if tokenURL = strings.TrimRight(tokenURL, "/"); tokenURL != "" && tokenURL != DefaultTokenURL {
		page = strings.TrimSuffix(tokenURL, "token")
	}
	return strings.TrimRight(page, "/") + "/o/oauth2/v2/auth?" + url.Values{
		"response_type": {"code"}, "client_id": {clientID}, "redirect_uri": {redirect}, "scope": {Scopes}, "state": {state},
		"code_challenge": {challenge}, "code_challenge_method": {"S256"}, "access_type": {"offline"}, "prompt": {"consent"},
	}.Encode()
}
