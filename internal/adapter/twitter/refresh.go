package twitter

import (
	"cmp"
	"net/url"
	"strings"

	"autopost"
	"autopost/internal/adapter"
)

// Scopes are the scopes that publishing and renewal need.
const Scopes = "tweet.read tweet.write users.read media.write offline.access"

// NewRefresher returns a refresher of OAuth 2.0 tokens for a base URL. A refresh token is valid once: the
// caller stores its replacement before using it. Bare tokens and OAuth 1.0a keys are never renewed.
func NewRefresher(base string, client adapter.Doer) adapter.TokenEndpoint {
	return adapter.TokenEndpoint{
		URL: strings.TrimRight(base, "/") + "/2/oauth2/token", Client: client,
		Revoked: []string{"invalid_request", "invalid_grant"}, RevokedCode: "x_token_revoked", AppCode: "x_unauthorized",
		Classify: classifySpending,
	}
}

// classifySpending classifies the refusals about money, which X gives to token requests too.
func classifySpending(answer adapter.Answer, hide adapter.Redactor) *autopost.Error {
	if failure := refused(answer, hide); failure.Code == codeNoCredits {
		return failure
	}
	return nil
}

// consentPages are the addresses of X's consent page by its base URL. The page is on another host than the API.
var consentPages = map[string]string{
	DefaultBaseURL:            "https://x.com",
	"https://api.twitter.com": "https://x.com",
}

// ConsentURL is the page on which the owner of an account allows the app to post. The code that it
// returns is valid for 30 seconds. Below a base URL that is not X's own, the page is at /i/oauth2/authorize.
func ConsentURL(base, clientID, redirect, state, challenge string) string {
	base = strings.TrimRight(cmp.Or(base, DefaultBaseURL), "/")
	return cmp.Or(consentPages[base], base) + "/i/oauth2/authorize?" + url.Values{
		"response_type": {"code"}, "client_id": {clientID}, "redirect_uri": {redirect}, "scope": {Scopes},
		"state": {state}, "code_challenge": {challenge}, "code_challenge_method": {"S256"},
	}.Encode()
}
