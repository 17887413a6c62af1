// Package oidc simulates a strict identity provider (OpenID Connect Core 1.0): discovery, the authorization code flow
// with PKCE, and signed tokens. It signs its one person in without a page.
package oidc

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// Person is who signs in.
type Person struct {
	Email, Name string
	Unverified  bool
}

// Token changes the next tokens, so that a client must refuse them. The zero value changes nothing.
type Token struct {
	Issuer, Audience, Nonce string
	// Expired tokens ended an hour ago. OtherKey signs with a key that is not published. Unsigned has the algorithm none.
	Expired, OtherKey, Unsigned bool
}

// Config describes the only client.
type Config struct{ ClientID, ClientSecret, Redirect string }

type grant struct {
	nonce, challenge string
	at               time.Time
}

// Server is the provider. Issuer must be set before the first request.
type Server struct {
	Issuer string

	mu         sync.Mutex
	cfg        Config
	person     Person
	token      Token
	key, other *rsa.PrivateKey
	codes      map[string]grant
}

// New returns a provider that signs person in.
func New(cfg Config, person Person) (*Server, error) {
	s := &Server{cfg: cfg, person: person, codes: map[string]grant{}}
	for _, key := range []**rsa.PrivateKey{&s.key, &s.other} {
		made, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			return nil, err
		}
		*key = made
	}
	return s, nil
}

// Set changes who signs in, and the next tokens.
func (s *Server) Set(person Person, token Token) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.person, s.token = person, token
}

// SetRedirect changes the registered address of the client.
func (s *Server) SetRedirect(redirect string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cfg.Redirect = redirect
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r.Method + " " + r.URL.Path {
	case "GET /.well-known/openid-configuration":
		answer(w, http.StatusOK, map[string]any{
			"issuer": s.Issuer, "authorization_endpoint": s.Issuer + "/authorize", "token_endpoint": s.Issuer + "/token", "jwks_uri": s.Issuer + "/keys",
			"response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"}, "id_token_signing_alg_values_supported": []string{"RS256"},
		})
	case "GET /keys":
		public := s.key.PublicKey
		answer(w, http.StatusOK, map[string]any{"keys": []any{map[string]any{
			"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "one", "n": encode(public.N.Bytes()), "e": encode(big.NewInt(int64(public.E)).Bytes()),
		}}})
	case "GET /authorize":
		s.authorize(w, r)
	case "POST /token":
		s.exchange(w, r)
	default:
		http.NotFound(w, r)
	}
}

// authorize issues a code. A wrong client or address is not redirected.
func (s *Server) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("client_id") != s.cfg.ClientID || q.Get("redirect_uri") != s.cfg.Redirect {
		http.Error(w, "unknown client or redirect_uri", http.StatusBadRequest)
		return
	}
	back := url.Values{"state": {q.Get("state")}}
	scopes := strings.Fields(q.Get("scope"))
	switch {
	case q.Get("response_type") != "code", !slices.Contains(scopes, "openid"), !slices.Contains(scopes, "email"), q.Get("state") == "", q.Get("nonce") == "",
		len(q.Get("code_challenge")) != 43, q.Get("code_challenge_method") != "S256":
		back.Set("error", "invalid_request")
	default:
		code := rand.Text()
		s.codes[code] = grant{q.Get("nonce"), q.Get("code_challenge"), time.Now()}
		back.Set("code", code)
	}
	http.Redirect(w, r, s.cfg.Redirect+"?"+back.Encode(), http.StatusFound)
}

// exchange gives a token for a code, once.
func (s *Server) exchange(w http.ResponseWriter, r *http.Request) {
	id, secret, basic := r.BasicAuth()
	if err := r.ParseForm(); err != nil {
		answer(w, http.StatusBadRequest, map[string]any{"error": "invalid_request"})
		return
	}
	form := r.PostForm
	if !basic {
		id, secret = form.Get("client_id"), form.Get("client_secret")
	}
	g, known := s.codes[form.Get("code")]
	delete(s.codes, form.Get("code"))
	sum := sha256.Sum256([]byte(form.Get("code_verifier")))
	switch {
	case id != s.cfg.ClientID || secret != s.cfg.ClientSecret:
		answer(w, http.StatusUnauthorized, map[string]any{"error": "invalid_client"})
	case !known || form.Get("grant_type") != "authorization_code" || form.Get("redirect_uri") != s.cfg.Redirect || encode(sum[:]) != g.challenge || time.Since(g.at) > time.Minute:
		answer(w, http.StatusBadRequest, map[string]any{"error": "invalid_grant"})
	default:
		answer(w, http.StatusOK, map[string]any{"access_token": rand.Text(), "token_type": "Bearer", "expires_in": 60, "id_token": s.sign(g)})
	}
}

// sign returns the token of the person.
func (s *Server) sign(g grant) string {
	now, key := time.Now(), s.key
	claims := map[string]any{
		"iss": s.Issuer, "aud": s.cfg.ClientID, "sub": "1", "iat": now.Unix(), "exp": now.Add(time.Minute).Unix(), "auth_time": now.Unix(), "nonce": g.nonce,
		"email": s.person.Email, "email_verified": !s.person.Unverified, "name": s.person.Name,
	}
	for name, value := range map[string]string{"iss": s.token.Issuer, "aud": s.token.Audience, "nonce": s.token.Nonce} {
		if value != "" {
			claims[name] = value
		}
	}
	if s.token.Expired {
		claims["exp"] = now.Add(-time.Hour).Unix()
	}
	if s.token.OtherKey {
		key = s.other
	}
	header := map[string]any{"alg": "RS256", "kid": "one"}
	if s.token.Unsigned {
		header = map[string]any{"alg": "none"}
	}
	text := part(header) + "." + part(claims)
	if s.token.Unsigned {
		return text + "."
	}
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		return ""
	}
	return text + "." + encode(signature)
}

func part(value map[string]any) string {
	text, _ := json.Marshal(value) // texts, numbers and booleans
	return encode(text)
}

func encode(raw []byte) string { return base64.RawURLEncoding.EncodeToString(raw) }

func answer(w http.ResponseWriter, status int, body map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client may be gone
}
