// Package oauth simulates the OAuth 2.0 consent page of a platform, and the codes that it issues, bound
// to app, callback and verifier (RFC 6749, RFC 7636).
//
// The page is a plain form. If the app or the callback is unknown, the page shows an error and does not
// redirect, as the standard requires.
package oauth

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"autopost/internal/sim"
)

// The reasons for which a code is rejected. A rejected code is used up.
var (
	// ErrCode: the code was never issued, has expired, was used, or belongs to another app.
	ErrCode = errors.New("the code is not valid")
	// ErrRedirect: the callback differs from that of the request.
	ErrRedirect = errors.New("the callback differs")
	// ErrVerifier: the verifier does not match the challenge.
	ErrVerifier = errors.New("the verifier does not match")
)

// Client is an app.
type Client struct {
	Name string
	// Callbacks are its registered redirect URIs; others are refused.
	Callbacks []string
}

// Account is an account that the visitor can choose.
type Account struct{ ID, Name string }

// Allowed is a granted permission.
type Allowed struct {
	AccountID string
	Scope     string
	// Query is the request, with parameters that only the platform knows.
	Query url.Values
}

// Config describes the platform.
type Config struct {
	// Client returns an app by its client_id.
	Client func(id string) (Client, bool)
	// Accounts returns the accounts to choose from.
	Accounts func() []Account
	// Life returns the lifetime of a code.
	Life func() time.Duration
}

// ConsentPage serves the page and keeps the codes.
type ConsentPage struct {
	cfg    Config
	mu     sync.Mutex
	codes  map[string]code
	serial int
}

type code struct {
	Allowed
	expires time.Time
}

// New returns a ConsentPage without codes.
func New(cfg Config) *ConsentPage { return &ConsentPage{cfg: cfg, codes: map[string]code{}} }

// Expire makes all codes expired.
func (p *ConsentPage) Expire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.codes)
}

var page = template.Must(template.New("consent").Parse(`<!doctype html>
<title>{{.App}} asks for access</title>
<h1>{{.App}} asks for access to your account</h1>
<p>It will be able to: {{.Scope}}</p>
<form method="post">
<select name="account">{{range .Accounts}}<option value="{{.ID}}">{{.Name}}</option>{{end}}</select>
<button name="decision" value="allow">Authorize app</button>
<button name="decision" value="deny">Cancel</button>
</form>
`))

// challengeForm matches the base64 of a SHA-256.
var challengeForm = regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`)

// ServeHTTP shows the page, and redirects the visitor with the result of the form.
func (p *ConsentPage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	client, known := p.cfg.Client(query.Get("client_id"))
	redirect := query.Get("redirect_uri")
	switch {
	case !known:
		http.Error(w, "Something went wrong: the app is unknown (client_id).", http.StatusBadRequest)
		return
	case !slices.Contains(client.Callbacks, redirect):
		http.Error(w, "Something went wrong: the callback is not registered for the app (redirect_uri).", http.StatusBadRequest)
		return
	}
	if wrong := mistake(query); wrong != "" {
		back(w, r, redirect, url.Values{"error": {"invalid_request"}, "error_description": {wrong}, "state": {query.Get("state")}})
		return
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		// An error here means that the visitor is gone.
		_ = page.Execute(w, map[string]any{"App": client.Name, "Scope": query.Get("scope"), "Accounts": p.cfg.Accounts()})
		return
	}
	account := r.PostFormValue("account")
	if r.PostFormValue("decision") != "allow" || !slices.ContainsFunc(p.cfg.Accounts(), func(a Account) bool { return a.ID == account }) {
		back(w, r, redirect, url.Values{"error": {"access_denied"}, "state": {query.Get("state")}})
		return
	}
	back(w, r, redirect, url.Values{"code": {p.issue(account, query)}, "state": {query.Get("state")}})
}

// mistake returns the problem of a request for consent; "" without a problem.
func mistake(query url.Values) string {
	switch {
	case query.Get("response_type") != "code":
		return "response_type must be code"
	case query.Get("scope") == "":
		return "scope is missing"
	case query.Get("state") == "":
		return "state is missing"
	case query.Get("code_challenge_method") != "S256" || !challengeForm.MatchString(query.Get("code_challenge")):
		return "code_challenge_method must be S256"
	}
	return ""
}

func back(w http.ResponseWriter, r *http.Request, redirect string, answer url.Values) {
	http.Redirect(w, r, redirect+"?"+answer.Encode(), http.StatusFound) //nolint:gosec // the caller has checked that the callback is registered
}

func (p *ConsentPage) issue(account string, query url.Values) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.serial++
	name := sim.Digest([]byte(fmt.Sprint("code", p.serial, account, strconv.FormatInt(time.Now().UnixNano(), 10))))
	p.codes[name] = code{Allowed{account, query.Get("scope"), query}, time.Now().Add(p.cfg.Life())}
	return name
}

// Redeem handles the form of a token request and uses its code up.
func (p *ConsentPage) Redeem(clientID string, form url.Values) (Allowed, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	given, known := p.codes[form.Get("code")]
	delete(p.codes, form.Get("code"))
	sum := sha256.Sum256([]byte(form.Get("code_verifier")))
	switch {
	case !known, !time.Now().Before(given.expires), given.Query.Get("client_id") != clientID:
		return Allowed{}, ErrCode
	case given.Query.Get("redirect_uri") != form.Get("redirect_uri"):
		return Allowed{}, ErrRedirect
	case base64.RawURLEncoding.EncodeToString(sum[:]) != given.Query.Get("code_challenge"):
		return Allowed{}, ErrVerifier
	}
	return given.Allowed, nil
}
