package youtube

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"autopost"
	"autopost/internal/adapter"
)

// earlier is how long before its end a token is not used any more, at most.
const earlier = time.Minute

// key is a channel's credential: an OAuth client and what a person granted it.
type key struct {
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
	RefreshToken string `json:"refresh_token"`
	// AccessToken is used until it is refused; without RefreshToken there is no other.
	AccessToken string `json:"access_token"`
}

// readKey never quotes the secret in its error.
func readKey(secret autopost.Secret) (key, error) {
	var k key
	if json.Unmarshal([]byte(secret.Reveal()), &k) != nil {
		return key{}, errors.New(`the credential is no JSON object with strings "client_id", "client_secret", "refresh_token"`)
	}
	if k.AccessToken == "" && (k.ClientID == "" || k.ClientSecret == "" || k.RefreshToken == "") {
		return key{}, errors.New("the credential lacks client_id, client_secret or refresh_token, and has no access_token either")
	}
	if strings.ContainsFunc(k.AccessToken, func(r rune) bool { return r <= ' ' || r > '~' }) {
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

// accounts remembers what is known of each credential while the process lives.
type accounts struct {
	mu    sync.Mutex
	known map[[sha256.Size]byte]*account
}

func (a *accounts) of(k key) *account {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known == nil {
		a.known = map[[sha256.Size]byte]*account{}
	}
	id := sha256.Sum256([]byte(k.lasting()))
	if a.known[id] == nil {
		a.known[id] = &account{turn: make(chan struct{}, 1)}
	}
	return a.known[id]
}

// account is a credential in use. Whoever holds turn may change it.
type account struct {
	turn chan struct{}
	// given is the access token that came with the credential last.
	given string
	// access is the token for calls, "" when there is none yet; ends is zero when unknown.
	access string
	ends   time.Time
	// channel and uploads are the channel that the credential speaks for and its list of
	// uploads, "" before they were asked for.
	channel, uploads string
}

func (a *account) enter(ctx context.Context) *autopost.Error {
	select {
	case a.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return adapter.Refusal(autopost.Transient, autopost.ScopeDelivery, adapter.CodeNotStarted, "wait for an access token: "+ctx.Err().Error())
	}
}

func (a *account) leave() { <-a.turn }

// token is an access token other than the refused one; one exchange goes on at a time.
func (s *sender) token(ctx context.Context, refused string) (string, *autopost.Error) {
	a := s.account
	if failure := a.enter(ctx); failure != nil {
		return "", failure
	}
	defer a.leave()
	if s.key.AccessToken != a.given {
		a.given, a.access, a.ends = s.key.AccessToken, s.key.AccessToken, time.Time{}
	}
	if a.access != "" && a.access != refused && (a.ends.IsZero() || time.Now().Before(a.ends)) {
		return a.access, nil
	}
	if s.key.RefreshToken == "" {
		return "", adapter.Refusal(autopost.Permanent, autopost.ScopeChannel, codeUnauthorized, "the access token is refused, and there is no refresh token")
	}
	return a.access, s.exchange(ctx, a)
}

// exchange gets an access token for the refresh token. Nothing has been called for yet:
// each failure is definite.
func (s *sender) exchange(ctx context.Context, a *account) *autopost.Error {
	form := url.Values{
		"grant_type": {"refresh_token"}, "client_id": {s.key.ClientID}, "client_secret": {s.key.ClientSecret}, "refresh_token": {s.key.RefreshToken},
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.cfg.TokenURL, strings.NewReader(form.Encode()))
	if err != nil {
		return adapter.Refusal(autopost.Permanent, autopost.ScopePlatform, autopost.CodeValidationFailed, "the token URL makes no address")
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	asked := time.Now()
	answer, failure := adapter.Exchange(s.cfg.Client, req, s.hide)
	if failure != nil {
		return definite(failure, codeTokenUnavailable, autopost.ScopePlatform)
	}
	var got struct {
		AccessToken string `json:"access_token"`
		ExpiresIn   int64  `json:"expires_in"` // seconds
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	readable := json.Unmarshal(answer.Body, &got) == nil
	if answer.Status == http.StatusOK && readable && got.AccessToken != "" {
		life := time.Duration(got.ExpiresIn) * time.Second
		a.access, a.ends = got.AccessToken, asked.Add(life-min(earlier, life/10))
		return nil
	}
	words := fmt.Sprintf("the token endpoint answers %d", answer.Status)
	if readable && got.Error != "" {
		words = got.Error + ": " + got.Description
	}
	rule := adapter.Rule{Category: autopost.Transient, Scope: autopost.ScopePlatform, Code: codeTokenUnavailable}
	switch {
	case got.Error == "invalid_grant":
		rule = adapter.Rule{Category: autopost.Permanent, Scope: autopost.ScopeChannel, Code: codeInvalidGrant}
	case answer.Status >= 300 && answer.Status < 400:
		rule.Category = autopost.Permanent
	case answer.Status >= 400 && answer.Status < 500 && answer.Status != http.StatusTooManyRequests && answer.Status != http.StatusRequestTimeout:
		rule = adapter.Rule{Category: autopost.Permanent, Scope: autopost.ScopeChannel, Code: codeUnauthorized}
	}
	return rule.Error(answer, words, s.hide)
}
