package adapter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"autopost"
)

// TokenEndpoint is the token endpoint of an OAuth 2.0 platform. Secrets are JSON objects with
// client_id, client_secret (except for public apps), refresh_token and access_token. It implements
// autopost.Refresher.
type TokenEndpoint struct {
	// URL is the endpoint. Required.
	URL string
	// Client makes the calls. Required.
	Client Doer
	// SecretInForm sends the app's secret in the form instead of the header.
	SecretInForm bool
	// Revoked lists the errors that mean that the grant is no longer valid. RevokedCode is our code for
	// them, AppCode our code for rejected app credentials.
	Revoked              []string
	RevokedCode, AppCode string
	// Classify may classify a refusal that is not about the grant, such as a spending limit; nil means
	// that it does not. Optional.
	Classify func(answer Answer, hide Redactor) *autopost.Error
}

// Renewal implements autopost.Refresher. A secret of another form is never renewed.
func (TokenEndpoint) Renewal(secret autopost.Secret) autopost.Renewal {
	fields, _ := readFields(secret)
	switch {
	case fields["client_id"] == "", fields["refresh_token"] == "":
		return autopost.RenewNever
	case fields["access_token"] == "":
		return autopost.RenewFirst
	}
	return autopost.RenewLater
}

// Refresh implements autopost.Refresher.
func (t TokenEndpoint) Refresh(ctx context.Context, secret autopost.Secret) (autopost.Renewed, *autopost.Error) {
	fields, _ := readFields(secret)
	return t.ask(ctx, secret, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {fields["refresh_token"]}})
}

// Exchange exchanges the code of an owner's consent for the secret of the account. app contains
// client_id and client_secret. A secret that cannot be renewed is rejected.
func (t TokenEndpoint) Exchange(ctx context.Context, app autopost.Secret, code, verifier, redirect string) (autopost.Renewed, *autopost.Error) {
	renewed, failure := t.ask(ctx, app, url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "code_verifier": {verifier}, "redirect_uri": {redirect},
	})
	if failure == nil && t.Renewal(renewed.Secret) != autopost.RenewLater {
		return autopost.Renewed{}, Refusal(autopost.Permanent, autopost.ScopeChannel, autopost.CodeCredentialMissing,
			"the platform returned no refresh token: remove the app's access in the account's settings, and link again")
	}
	return renewed, failure
}

// ask makes one token request. It keeps only the error's name and description from the answer.
func (t TokenEndpoint) ask(ctx context.Context, secret autopost.Secret, form url.Values) (autopost.Renewed, *autopost.Error) {
	fields, err := readFields(secret)
	if err != nil {
		return autopost.Renewed{}, Refusal(autopost.Permanent, autopost.ScopeChannel, autopost.CodeCredentialMissing, err.Error())
	}
	secrets := []autopost.Secret{secret, autopost.NewSecret(form.Get("code")), autopost.NewSecret(form.Get("code_verifier"))}
	for name, value := range fields {
		if name != "client_id" {
			secrets = append(secrets, autopost.NewSecret(value))
		}
	}
	hide := Hide(secrets...)
	req, err := t.request(ctx, fields["client_id"], fields["client_secret"], form)
	if err != nil {
		return autopost.Renewed{}, t.unavailable("the token endpoint's address is invalid")
	}
	answer, failure := Exchange(t.Client, req, hide)
	if failure != nil {
		// A token request posts nothing, so its outcome is never unknown.
		return autopost.Renewed{}, t.unavailable(failure.Message)
	}
	refused := "the platform does not renew the credential (%s): link the account again"
	if form.Has("code") {
		refused = "the platform rejects the code (%s), which is valid once and for a short time: link the account again"
	}
	if t.Classify != nil && answer.Status >= 300 {
		if failure := t.Classify(answer, hide); failure != nil {
			return autopost.Renewed{}, failure
		}
	}
	return t.read(answer, secret, refused, hide)
}

func (t TokenEndpoint) request(ctx context.Context, id, secret string, form url.Values) (*http.Request, error) {
	if secret == "" || t.SecretInForm {
		form.Set("client_id", id)
	}
	if secret != "" && t.SecretInForm {
		form.Set("client_secret", secret)
	}
	body := form.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.URL, io.NopCloser(strings.NewReader(body)))
	if err != nil {
		return nil, err
	}
	req.ContentLength = int64(len(body))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if secret != "" && !t.SecretInForm {
		req.SetBasicAuth(id, secret)
	}
	return req, nil
}

// read reads the tokens of an answer. refused is the message format for a rejected grant.
func (t TokenEndpoint) read(answer Answer, secret autopost.Secret, refused string, hide Redactor) (autopost.Renewed, *autopost.Error) {
	var said struct {
		AccessToken  string `json:"access_token"`
		RefreshToken string `json:"refresh_token"`
		ExpiresIn    int64  `json:"expires_in"` // seconds
		Error        string `json:"error"`
		Description  string `json:"error_description"`
	}
	err := json.Unmarshal(answer.Body, &said)
	if err == nil && answer.Status == http.StatusOK && said.AccessToken != "" {
		renewed, err := withTokens(secret, said.AccessToken, said.RefreshToken)
		if err != nil {
			return autopost.Renewed{}, t.unavailable(err.Error())
		}
		return autopost.Renewed{Secret: renewed, ValidFor: time.Duration(said.ExpiresIn) * time.Second}, nil
	}
	words := "no OAuth error"
	if err == nil && said.Error != "" {
		words = hide.Text(said.Error + ": " + said.Description)
	}
	switch {
	case answer.Status == http.StatusBadRequest && slices.Contains(t.Revoked, said.Error):
		return autopost.Renewed{}, Refusal(autopost.Permanent, autopost.ScopeChannel, t.RevokedCode, fmt.Sprintf(refused, words))
	case said.Error != "" && (answer.Status == http.StatusUnauthorized || answer.Status == http.StatusForbidden):
		return autopost.Renewed{}, Refusal(autopost.Permanent, autopost.ScopeChannel, t.AppCode,
			"the platform rejects the app's client_id and client_secret ("+words+"): correct them")
	}
	failure := t.unavailable("the token endpoint answers " + strconv.Itoa(answer.Status) + ", " + words)
	failure.RetryAfterMS = answer.RetryAfterMS()
	return autopost.Renewed{}, failure
}

func (t TokenEndpoint) unavailable(message string) *autopost.Error {
	return Refusal(autopost.Transient, autopost.ScopePlatform, autopost.CodeCredentialUnavailable, message)
}

// readFields returns the text fields of a secret that is a JSON object. The error does not quote the
// secret.
func readFields(secret autopost.Secret) (map[string]string, error) {
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(secret.Reveal()), &object) != nil {
		return nil, errors.New("the secret is not a JSON object")
	}
	fields := make(map[string]string, len(object))
	for name, raw := range object {
		var text string
		if json.Unmarshal(raw, &text) == nil {
			fields[name] = text
		}
	}
	return fields, nil
}

// withTokens returns the secret with new tokens. Other fields stay, also the refresh token if there is
// no new one.
func withTokens(secret autopost.Secret, access, refresh string) (autopost.Secret, error) {
	var object map[string]any
	if json.Unmarshal([]byte(secret.Reveal()), &object) != nil {
		return autopost.Secret{}, errors.New("the secret is not a JSON object")
	}
	object["access_token"] = access
	if refresh != "" {
		object["refresh_token"] = refresh
	}
	return autopost.NewSecret(string(encode(object))), nil
}

var _ autopost.Refresher = TokenEndpoint{}
