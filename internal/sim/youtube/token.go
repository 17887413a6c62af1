package youtube

import (
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"autopost/internal/sim"
	"autopost/internal/sim/oauth"
)

// The scopes of publishing.
const (
	ScopeUpload = "https://www.googleapis.com/auth/youtube.upload"
	ScopeAll    = "https://www.googleapis.com/auth/youtube.force-ssl"
)

// tokenLife is the lifetime of access tokens that Google states.
const tokenLife = 3599 * time.Second

// token is an issued credential. Revoked tokens are kept.
type token struct {
	refreshing bool
	project    *project
	channel    *channel
	scopes     string
	expires    time.Time // zero for never
	dead       bool
}

// Grant creates a refresh token for a known project and channel.
func (s *Server) Grant(projectID, channelID, scopes string) (refreshToken string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, c := s.projects[projectID], s.channels[channelID]
	if p == nil || c == nil {
		return "", errors.New("youtube grant needs a known project and a known channel")
	}
	refreshToken = "1//" + s.newName("refresh", 48)
	s.tokens[refreshToken] = &token{refreshing: true, project: p, channel: c, scopes: scopes}
	return refreshToken, nil
}

// ExpireTokens expires all access tokens. Their refresh tokens stay valid.
func (s *Server) ExpireTokens() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tokens {
		t.dead = t.dead || !t.refreshing
	}
}

// Disconnect revokes all tokens of a channel, as its owner can.
func (s *Server) Disconnect(channelID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tokens {
		t.dead = t.dead || t.channel.ID == channelID
	}
}

// Tokens is Google's token endpoint. It serves any path.
func (s *Server) Tokens() http.Handler { return http.HandlerFunc(s.serveToken) }

// tokenError is an error of the token endpoint.
type tokenError struct {
	status            int
	name, description string
}

func (s *Server) serveToken(w http.ResponseWriter, r *http.Request) {
	x := s.core.Begin(w, r, sim.Entry{Platform: Platform, Method: "POST /token"})
	if x.Cut() {
		return
	}
	body, err := io.ReadAll(io.LimitReader(x.Body(), maxBody))
	form, formErr := url.ParseQuery(string(body))
	x.Entry().Credential = sim.CredentialHash(form.Get("refresh_token"))
	s.mu.Lock()
	if t := s.refreshToken(form); t != nil {
		x.Entry().Chat, x.Entry().ChatTitle = t.channel.ID, t.channel.Title
	}
	s.mu.Unlock()
	x.Arrive()
	x.Answer(func() sim.Reply {
		switch {
		case r.Method != http.MethodPost:
			return refuseToken(tokenError{http.StatusMethodNotAllowed, "invalid_request", "Only POST is allowed."})
		case err != nil || formErr != nil || !strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded"):
			return refuseToken(tokenError{http.StatusBadRequest, "invalid_request", "The body is not a form."})
		}
		return s.refresh(form)
	}, refuseTokenFault)
}

// refreshToken finds the token of a form; nil if there is none.
func (s *Server) refreshToken(form url.Values) *token {
	given := form.Get("refresh_token")
	t := s.tokens[given]
	if t == nil && s.opts.AnyAccount && tokenForm.MatchString(given) && form.Get("client_id") != "" {
		t = &token{refreshing: true, project: s.projectOf(form.Get("client_id")), channel: s.channelOf(given), scopes: ScopeAll + " " + ScopeUpload}
		s.tokens[given] = t
	}
	return t
}

func (s *Server) refresh(form url.Values) sim.Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	if form.Get("grant_type") == "authorization_code" {
		return s.exchange(form)
	}
	for _, name := range []string{"grant_type", "client_id", "client_secret", "refresh_token"} {
		if form.Get(name) == "" {
			return refuseToken(tokenError{http.StatusBadRequest, "invalid_request", "Missing required parameter: " + name})
		}
	}
	if form.Get("grant_type") != "refresh_token" {
		return refuseToken(tokenError{http.StatusBadRequest, "unsupported_grant_type", "Invalid grant_type: " + form.Get("grant_type")})
	}
	t := s.refreshToken(form)
	if !s.knowsClient(form) {
		return refuseToken(tokenError{http.StatusUnauthorized, "invalid_client", "The OAuth client was not found."})
	}
	switch {
	case t == nil, t.dead, !t.refreshing:
		return refuseToken(tokenError{http.StatusBadRequest, "invalid_grant", "Token has been expired or revoked."})
	case t.project.ClientID != form.Get("client_id"):
		return refuseToken(tokenError{http.StatusUnauthorized, "unauthorized_client", "Unauthorized"})
	}
	return s.granted(t, nil)
}

// granted answers with an access token of a grant and further members.
func (s *Server) granted(t *token, more map[string]any) sim.Reply {
	access := "ya29." + s.newName("access", 48)
	s.tokens[access] = &token{project: t.project, channel: t.channel, scopes: t.scopes, expires: time.Now().Add(s.core.Pace.Of(tokenLife))}
	body := map[string]any{"access_token": access, "expires_in": s.core.Pace.Seconds(tokenLife), "scope": t.scopes, "token_type": "Bearer"}
	maps.Copy(body, more)
	return sim.Reply{Status: http.StatusOK, ContentType: "application/json; charset=utf-8", Accepted: true, Body: encode(body)}
}

// codeLife is the lifetime of a consent code.
const codeLife = 10 * time.Minute

// newConsent creates the page on which owners of channels authorize apps.
func (s *Server) newConsent() *oauth.ConsentPage {
	return oauth.New(oauth.Config{
		Client: func(id string) (oauth.Client, bool) {
			s.mu.Lock()
			defer s.mu.Unlock()
			for _, p := range s.projects {
				if id != "" && p.ClientID == id {
					return oauth.Client{Name: p.ID, Callbacks: p.Callbacks}, true
				}
			}
			return oauth.Client{}, false
		},
		Accounts: func() []oauth.Account {
			s.mu.Lock()
			defer s.mu.Unlock()
			var out []oauth.Account
			for _, c := range s.channels {
				out = append(out, oauth.Account{ID: c.ID, Name: c.Title})
			}
			return out
		},
		Life: func() time.Duration { return s.core.Pace.Of(codeLife) },
	})
}

// exchange answers a consent code with tokens. Google returns a refresh token only for
// access_type=offline, and for a repeated consent only with prompt=consent.
func (s *Server) exchange(form url.Values) sim.Reply {
	if !s.knowsClient(form) {
		return refuseToken(tokenError{http.StatusUnauthorized, "invalid_client", "The OAuth client was not found."})
	}
	allowed, err := s.Consent.Redeem(form.Get("client_id"), form)
	switch {
	case errors.Is(err, oauth.ErrVerifier):
		return refuseToken(tokenError{http.StatusBadRequest, "invalid_grant", "Invalid code verifier."})
	case errors.Is(err, oauth.ErrRedirect):
		return refuseToken(tokenError{http.StatusBadRequest, "redirect_uri_mismatch", "Bad Request"})
	case err != nil:
		return refuseToken(tokenError{http.StatusBadRequest, "invalid_grant", "Malformed auth code."})
	}
	t := &token{refreshing: true, channel: s.channels[allowed.AccountID], scopes: allowed.Scope}
	for _, p := range s.projects {
		if p.ClientID == form.Get("client_id") {
			t.project = p
		}
	}
	if allowed.Query.Get("access_type") != "offline" || allowed.Query.Get("prompt") != "consent" {
		return s.granted(t, nil)
	}
	refresh := "1//" + s.newName("refresh", 48)
	s.tokens[refresh] = t
	return s.granted(t, map[string]any{"refresh_token": refresh})
}

func (s *Server) knowsClient(form url.Values) bool {
	for _, p := range s.projects {
		if p.ClientID == form.Get("client_id") {
			return p.ClientSecret == form.Get("client_secret") || s.opts.AnyAccount && p.ClientSecret == ""
		}
	}
	return false
}

func refuseToken(e tokenError) sim.Reply {
	return sim.Reply{
		Status: e.status, ContentType: "application/json; charset=utf-8", Reason: e.name + ": " + e.description,
		Body: encode(map[string]any{"error": e.name, "error_description": e.description}),
	}
}

// refuseTokenFault returns the error of a fault rule. Code is its name.
func refuseTokenFault(f sim.Fault) sim.Reply {
	e := tokenError{f.Status, f.Code, f.Description}
	if e.name == "" {
		e.name = map[int]string{http.StatusBadRequest: "invalid_grant", http.StatusUnauthorized: "invalid_client"}[f.Status]
	}
	if e.name == "" {
		e.name = "internal_failure"
	}
	if e.description == "" {
		e.description = "Token has been expired or revoked."
	}
	return refuseToken(e)
}

// authenticate finds the token of a call and checks its scopes.
func (s *Server) authenticate(header string, scopes []string) (*token, *refusal) {
	bearer, ok := strings.CutPrefix(header, "Bearer ")
	if !ok {
		return nil, because("required")
	}
	t := s.tokens[bearer]
	if t == nil && s.opts.AnyAccount && tokenForm.MatchString(bearer) {
		t = &token{project: s.projectOf("any"), channel: s.channelOf(bearer), scopes: ScopeAll + " " + ScopeUpload}
		s.tokens[bearer] = t
	}
	if t == nil || t.dead || t.refreshing || !t.expires.IsZero() && !time.Now().Before(t.expires) {
		r := because("authError")
		r.location, r.locationType = "Authorization", "header"
		return nil, r
	}
	granted := strings.Fields(t.scopes)
	if !slices.ContainsFunc(scopes, func(scope string) bool { return slices.Contains(granted, scope) }) {
		return nil, because("insufficientPermissions")
	}
	if t.channel.Refusal != "" {
		return t, because(t.channel.Refusal)
	}
	return t, nil
}
