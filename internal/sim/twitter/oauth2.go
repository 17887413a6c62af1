package twitter

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"autopost/internal/sim/oauth"
)

// tokenLife is the lifetime of OAuth 2.0 access tokens.
const tokenLife = 2 * time.Hour

// AllScopes are the scopes that publishing needs.
const AllScopes = "tweet.read tweet.write users.read media.write offline.access"

type tokenKind int

const (
	signing tokenKind = iota // OAuth 1.0a
	access
	refreshing
	appOnly
)

// token is an issued credential. Revoked tokens are kept.
type token struct {
	kind    tokenKind
	user    *user
	app     *app
	secret  string // of OAuth 1.0a
	scopes  string
	expires time.Time // zero for never
	dead    bool      // used up or revoked
}

// GrantOAuth1 creates an OAuth 1.0a token with its secret for a known app and user.
func (s *Server) GrantOAuth1(appName, userID, name, secret string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, u := s.apps[appName], s.users[userID]
	if a == nil || u == nil || name == "" || secret == "" {
		return errors.New("x grant needs a known app, a known user, a token and its secret")
	}
	s.tokens[name] = &token{kind: signing, user: u, app: a, secret: secret}
	return nil
}

// GrantOAuth2 creates a pair of tokens for a known app and user. Without the scope offline.access the
// refresh token is empty.
func (s *Server) GrantOAuth2(appName, userID, scopes string) (accessToken, refreshToken string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, u := s.apps[appName], s.users[userID]
	if a == nil || u == nil {
		return "", "", errors.New("x grant needs a known app and a known user")
	}
	accessToken, refreshToken = s.grant(a, u, scopes)
	return accessToken, refreshToken, nil
}

// GrantAppOnly creates a token of a known app without a user.
func (s *Server) GrantAppOnly(appName string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.apps[appName]
	if a == nil {
		return "", errors.New("x grant needs a known app")
	}
	name := s.newSecret("app")
	s.tokens[name] = &token{kind: appOnly, app: a, user: &user{}}
	return name, nil
}

func (s *Server) grant(a *app, u *user, scopes string) (accessToken, refreshToken string) {
	accessToken = s.newSecret("access")
	s.tokens[accessToken] = &token{kind: access, user: u, app: a, scopes: scopes, expires: time.Now().Add(s.core.Pace.Of(tokenLife))}
	if slices.Contains(strings.Fields(scopes), "offline.access") {
		refreshToken = s.newSecret("refresh")
		s.tokens[refreshToken] = &token{kind: refreshing, user: u, app: a, scopes: scopes}
	}
	return accessToken, refreshToken
}

// ExpireTokens expires all OAuth 2.0 access tokens. Their refresh tokens stay valid.
func (s *Server) ExpireTokens() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tokens {
		if t.kind == access {
			t.dead = true
		}
	}
}

// Disconnect revokes all tokens of a user, as the user can.
func (s *Server) Disconnect(userID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tokens {
		if t.user != nil && t.user.ID == userID {
			t.dead = true
		}
	}
}

// presented is the token of a request; "" without one.
func presented(r *http.Request) string {
	header := r.Header.Get("Authorization")
	if bearer, ok := strings.CutPrefix(header, "Bearer "); ok {
		return bearer
	}
	return oauth1Params(header)["oauth_token"]
}

// authenticate finds the caller and checks the rights for a route.
func (s *Server) authenticate(c *call, to route) *problem {
	t, refused := s.identify(c)
	if refused != nil {
		return refused
	}
	c.user, c.app = t.user, t.app
	switch {
	case t.kind == appOnly:
		return named("unsupported-authentication")
	case t.app.Unenrolled:
		return named("client-forbidden")
	case t.kind == signing && t.app.ReadOnly && to.writes:
		return named("oauth1-permissions")
	case t.kind == access:
		granted := strings.Fields(t.scopes)
		for _, scope := range to.scopes {
			if !slices.Contains(granted, scope) {
				c.note("the token lacks the scope " + scope)
				return named("scope")
			}
		}
	}
	return nil
}

func (s *Server) identify(c *call) (*token, *problem) {
	header := c.r.Header.Get("Authorization")
	if params := oauth1Params(header); params != nil {
		return s.verifyOAuth1(c, params)
	}
	bearer, ok := strings.CutPrefix(header, "Bearer ")
	if !ok {
		return nil, named("unauthorized")
	}
	t := s.tokens[bearer]
	if t == nil && s.opts.AnyAccount && tokenForm.MatchString(bearer) {
		t = &token{kind: access, user: s.userOf(bearer), app: s.apps[anyApp], scopes: AllScopes}
		s.tokens[bearer] = t
	}
	switch {
	case t == nil, t.dead, t.kind != access && t.kind != appOnly:
		return nil, named("unauthorized")
	case !t.expires.IsZero() && !time.Now().Before(t.expires):
		c.note("the access token has expired")
		return nil, named("unauthorized")
	}
	return t, nil
}

// oauth1Token finds a token by its consumer key and name.
func (s *Server) oauth1Token(key, name string) *token {
	t := s.tokens[name]
	if t == nil && s.opts.AnyAccount && tokenForm.MatchString(name) {
		if a := s.consumer(key); a != nil {
			t = &token{kind: signing, user: s.userOf(name), app: a, secret: name + "-secret"}
			s.tokens[name] = t
		}
	}
	if t == nil || t.dead || t.kind != signing {
		return nil
	}
	return t
}

// consumer is the app of a consumer key. With AnyAccount it creates a missing app.
func (s *Server) consumer(key string) *app {
	for _, known := range s.apps {
		if known.ConsumerKey == key {
			return known
		}
	}
	if !tokenForm.MatchString(key) {
		return nil
	}
	a := &app{App: App{Name: key, ConsumerKey: key, ConsumerSecret: key + "-secret"}}
	s.apps[key] = a
	return a
}

// refresh is the token endpoint. A refresh token is valid once.
func (s *Server) refresh(c *call) (outcome, *problem) {
	form, refused := c.form()
	if refused != nil {
		return outcome{}, refused
	}
	switch form.Get("grant_type") {
	case "refresh_token":
	case "authorization_code":
		return s.exchange(c, form)
	default:
		return outcome{}, &problem{status: http.StatusBadRequest, oauth: "unsupported_grant_type", detail: "The grant_type is not supported."}
	}
	given := form.Get("refresh_token")
	t := s.tokens[given]
	if t == nil && s.opts.AnyAccount && tokenForm.MatchString(given) {
		t = &token{kind: refreshing, user: s.userOf(given), app: s.apps[anyApp], scopes: AllScopes}
		s.tokens[given] = t
	}
	if t != nil {
		c.log.Chat, c.log.ChatTitle = t.user.ID, t.user.Name+" @"+t.user.Username
	}
	switch {
	case t == nil, t.dead, t.kind != refreshing:
		return outcome{}, named("token-invalid")
	case !t.app.isClient(c.r, form):
		return outcome{}, &problem{status: http.StatusUnauthorized, oauth: "unauthorized_client", detail: "Missing valid authorization header"}
	}
	if t.app.spent() {
		return outcome{}, t.app.spendCap()
	}
	t.dead = true
	return s.granted(t.app, t.user, t.scopes), nil
}

func (s *Server) granted(a *app, u *user, scopes string) outcome {
	accessToken, refreshToken := s.grant(a, u, scopes)
	body := map[string]any{"token_type": "bearer", "expires_in": s.core.Pace.Seconds(tokenLife), "access_token": accessToken, "scope": scopes}
	if refreshToken != "" {
		body["refresh_token"] = refreshToken
	}
	return outcome{status: http.StatusOK, body: body}
}

// codeLife is the lifetime of a consent code.
const codeLife = 30 * time.Second

// newConsent creates the page on which owners of accounts authorize apps.
func (s *Server) newConsent() *oauth.ConsentPage {
	return oauth.New(oauth.Config{
		Client: func(id string) (oauth.Client, bool) {
			s.mu.Lock()
			defer s.mu.Unlock()
			a := s.client(id)
			if a == nil {
				return oauth.Client{}, false
			}
			return oauth.Client{Name: a.Name, Callbacks: a.Callbacks}, true
		},
		Accounts: func() []oauth.Account {
			s.mu.Lock()
			defer s.mu.Unlock()
			var out []oauth.Account
			for _, u := range s.users {
				out = append(out, oauth.Account{ID: u.ID, Name: "@" + u.Username})
			}
			return out
		},
		Life: func() time.Duration { return s.core.Pace.Of(codeLife) },
	})
}

// client is the app of a client id; nil without one.
func (s *Server) client(id string) *app {
	for _, a := range s.apps {
		if id != "" && a.ClientID == id {
			return a
		}
	}
	return nil
}

// exchange answers a consent code with tokens.
func (s *Server) exchange(c *call, form url.Values) (outcome, *problem) {
	id, _, basic := c.r.BasicAuth()
	if !basic {
		id = form.Get("client_id")
	}
	a := s.client(id)
	if a == nil || !a.isClient(c.r, form) {
		return outcome{}, &problem{status: http.StatusUnauthorized, oauth: "unauthorized_client", detail: "Missing valid authorization header"}
	}
	if a.spent() {
		return outcome{}, a.spendCap()
	}
	allowed, err := s.Consent.Redeem(id, form)
	switch {
	case errors.Is(err, oauth.ErrVerifier):
		return outcome{}, &problem{status: http.StatusBadRequest, oauth: "invalid_request", detail: "Value passed for the code verifier did not match the code challenge."}
	case errors.Is(err, oauth.ErrRedirect):
		return outcome{}, &problem{status: http.StatusBadRequest, oauth: "invalid_request", detail: "Value passed for the redirect uri did not match the uri of the authorization code."}
	case err != nil:
		return outcome{}, named("invalid-grant")
	}
	return s.granted(a, s.users[allowed.AccountID], allowed.Scope), nil
}

// isClient checks the client credentials of a token request.
func (a *app) isClient(r *http.Request, form url.Values) bool {
	id, secret, basic := r.BasicAuth()
	if a.Name == anyApp {
		return basic || form.Get("client_id") != ""
	}
	if a.ClientSecret != "" {
		return basic && id == a.ClientID && secret == a.ClientSecret
	}
	return form.Get("client_id") == a.ClientID
}

func (s *Server) revoke(c *call) (outcome, *problem) {
	form, refused := c.form()
	if refused != nil {
		return outcome{}, refused
	}
	t := s.tokens[form.Get("token")]
	if t == nil || !t.app.isClient(c.r, form) {
		return outcome{}, named("token-invalid")
	}
	t.dead = true
	return outcome{status: http.StatusOK, body: map[string]any{"revoked": true}}, nil
}

func (c *call) form() (url.Values, *problem) {
	if !strings.HasPrefix(c.r.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		return nil, &problem{status: http.StatusBadRequest, oauth: "invalid_request", detail: "The body is not a form."}
	}
	form, err := url.ParseQuery(string(c.body))
	if err != nil {
		return nil, &problem{status: http.StatusBadRequest, oauth: "invalid_request", detail: "The form cannot be read."}
	}
	return form, nil
}
