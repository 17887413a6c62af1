// Package oidc signs people in by OpenID Connect: the authorization code flow with PKCE, a state and a nonce. It says
// which address the identity provider has verified. Who that person is, the database decides.
package oidc

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"autopost"
)

// timeout limits all requests to the provider for one step of a sign-in.
const timeout = 20 * time.Second

// algorithms are the accepted signatures. A provider that signs with a shared secret is not among them.
var algorithms = []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.EdDSA}

// Doer makes requests.
type Doer interface {
	Do(req *http.Request) (*http.Response, error)
}

// Config configures a Provider. All fields are required.
type Config struct {
	// Issuer is the address of the provider, as its tokens name it.
	Issuer   string
	ClientID string
	// Secret is that of the client.
	Secret autopost.Secret
	Client Doer
}

// Provider is an identity provider. It is safe for concurrent use.
type Provider struct {
	cfg Config

	mu    sync.Mutex
	known *oidc.Provider
}

// New returns a Provider. The provider is asked for its addresses at the first sign-in.
func New(cfg Config) *Provider { return &Provider{cfg: cfg} }

// Attempt is what the browser keeps until the provider answers.
type Attempt struct {
	State    string `json:"state"`
	Nonce    string `json:"nonce"`
	Verifier string `json:"verifier"`
	// Next is the page after the sign-in.
	Next string `json:"next"`
	// Confirm means that a session is confirmed, not begun.
	Confirm bool `json:"confirm"`
}

// Person is who the provider says has signed in.
type Person struct {
	Email, Name string
	// At is when the person proved who they are; zero if the provider does not say.
	At time.Time
}

// Refusal is an answer that does not sign in.
type Refusal struct{ Reason string }

// Error implements error.
func (r *Refusal) Error() string { return r.Reason }

func refuse(format string, args ...any) error { return &Refusal{fmt.Sprintf(format, args...)} }

// transport makes the requests of the library by a Doer.
type transport struct{ Doer }

func (t transport) RoundTrip(req *http.Request) (*http.Response, error) { return t.Do(req) }

// provider returns the provider with its addresses and keys.
func (p *Provider) provider(ctx context.Context) (*oidc.Provider, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known != nil {
		return p.known, nil
	}
	// The library keeps this context for the keys.
	found, err := oidc.NewProvider(p.with(context.WithoutCancel(ctx)), p.cfg.Issuer)
	if err != nil {
		return nil, fmt.Errorf("read the identity provider: %w", err)
	}
	p.known = found
	return found, nil
}

func (p *Provider) with(ctx context.Context) context.Context {
	return oidc.ClientContext(ctx, &http.Client{Transport: transport{p.cfg.Client}, Timeout: timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }})
}

func (p *Provider) client(found *oidc.Provider, redirect string) *oauth2.Config {
	return &oauth2.Config{ClientID: p.cfg.ClientID, ClientSecret: p.cfg.Secret.Reveal(), Endpoint: found.Endpoint(), RedirectURL: redirect, Scopes: []string{oidc.ScopeOpenID, "email", "profile"}}
}

// Begin returns the address of the provider's page and what the browser keeps. confirm makes the person prove again who
// they are.
func (p *Provider) Begin(ctx context.Context, redirect, next string, confirm bool) (address string, a Attempt, err error) {
	found, err := p.provider(ctx)
	if err != nil {
		return "", a, err
	}
	a = Attempt{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), Next: next, Confirm: confirm}
	options := []oauth2.AuthCodeOption{oidc.Nonce(a.Nonce), oauth2.S256ChallengeOption(a.Verifier)}
	if confirm {
		options = append(options, oauth2.SetAuthURLParam("prompt", "login"), oauth2.SetAuthURLParam("max_age", "0"))
	}
	return p.client(found, redirect).AuthCodeURL(a.State, options...), a, nil
}

// Finish checks the answer of the provider. A *Refusal means that nobody has signed in.
func (p *Provider) Finish(ctx context.Context, redirect string, a Attempt, state, code string) (Person, error) {
	switch {
	case a.State == "" || subtle.ConstantTimeCompare([]byte(state), []byte(a.State)) != 1:
		return Person{}, refuse("the state is that of another sign-in")
	case code == "":
		return Person{}, refuse("the provider gave no code")
	}
	found, err := p.provider(ctx)
	if err != nil {
		return Person{}, err
	}
	ctx, cancel := context.WithTimeout(p.with(ctx), timeout)
	defer cancel()
	token, err := p.client(found, redirect).Exchange(ctx, code, oauth2.VerifierOption(a.Verifier))
	if refused := (*oauth2.RetrieveError)(nil); errors.As(err, &refused) && refused.Response != nil && refused.Response.StatusCode < http.StatusInternalServerError {
		return Person{}, refuse("the provider refuses the code: %.100s", refused.ErrorCode)
	}
	if err != nil {
		return Person{}, fmt.Errorf("exchange the code: %w", err)
	}
	raw, _ := token.Extra("id_token").(string)
	if raw == "" {
		return Person{}, refuse("the answer has no id_token")
	}
	id, err := found.Verifier(&oidc.Config{ClientID: p.cfg.ClientID, SupportedSigningAlgs: algorithms}).Verify(ctx, raw)
	if err != nil {
		return Person{}, refuse("the id_token is not valid: %s", err)
	}
	if subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(a.Nonce)) != 1 {
		return Person{}, refuse("the nonce is that of another sign-in")
	}
	return personOf(id)
}

func personOf(id *oidc.IDToken) (Person, error) {
	var claims struct {
		Email    string `json:"email"`
		Verified any    `json:"email_verified"`
		Name     string `json:"name"`
		AuthTime int64  `json:"auth_time"`
	}
	if err := id.Claims(&claims); err != nil {
		return Person{}, refuse("the id_token cannot be read")
	}
	if claims.Email == "" || claims.Verified != true && claims.Verified != "true" {
		return Person{}, refuse("the provider has not verified the address")
	}
	person := Person{Email: strings.TrimSpace(claims.Email), Name: claims.Name}
	if claims.AuthTime > 0 {
		person.At = time.Unix(claims.AuthTime, 0)
	}
	return person, nil
}
