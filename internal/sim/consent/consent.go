// Package consent is the part of OAuth 2.0 that simulated platforms have in common:
// the page on which the owner of an account lets an app act for it, and the codes
// that come of it, bound to app, callback and verifier (RFC 6749, RFC 7636).
//
// The page is a plain form. A request whose app or callback is not known is told so
// on the page and never sent back, as the standard wants it.
package consent

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

// The reasons for which a code brings nothing. Whatever was wrong, it is used up.
var (
	// ErrCode: it was never given, is too old, was used, or belongs to another app.
	ErrCode = errors.New("the code is not good")
	// ErrRedirect: the callback is not the one of the request.
	ErrRedirect = errors.New("the callback is another")
	// ErrVerifier: the verifier does not fit the challenge.
	ErrVerifier = errors.New("the verifier does not fit")
)

// Client is an app as the page shows it.
type Client struct {
	Name string
	// Callbacks are the redirect_uri that are registered for it; others are refused.
	Callbacks []string
}

// Account is one that the person at the page may choose.
type Account struct{ ID, Name string }

// Allowed is what an owner has allowed.
type Allowed struct {
	AccountID string
	Scope     string
	// Query is the request, for what a platform reads of it besides.
	Query url.Values
}

// Config says whose page it is.
type Config struct {
	// Client finds an app by its client_id.
	Client func(id string) (Client, bool)
	// Accounts are all that may be chosen.
	Accounts func() []Account
	// Life is how long a code is good.
	Life func() time.Duration
}

// Desk is the page, an http.Handler, and the memory of its codes.
type Desk struct {
	cfg    Config
	mu     sync.Mutex
	codes  map[string]code
	serial int
}

type code struct {
	Allowed
	expires time.Time
}

// New makes a desk.
func New(cfg Config) *Desk { return &Desk{cfg: cfg, codes: map[string]code{}} }

// Expire makes all codes too old.
func (d *Desk) Expire() {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.codes)
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

// challengeForm is that of the base64 of a SHA-256.
var challengeForm = regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`)

// ServeHTTP shows the page, and sends its visitor back with what was decided on it.
func (d *Desk) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	client, known := d.cfg.Client(query.Get("client_id"))
	redirect := query.Get("redirect_uri")
	switch {
	case !known:
		http.Error(w, "Something went wrong: the app is not known (client_id).", http.StatusBadRequest)
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
		// A visitor that is gone needs no page.
		_ = page.Execute(w, map[string]any{"App": client.Name, "Scope": query.Get("scope"), "Accounts": d.cfg.Accounts()})
		return
	}
	account := r.PostFormValue("account")
	if r.PostFormValue("decision") != "allow" || !slices.ContainsFunc(d.cfg.Accounts(), func(a Account) bool { return a.ID == account }) {
		back(w, r, redirect, url.Values{"error": {"access_denied"}, "state": {query.Get("state")}})
		return
	}
	back(w, r, redirect, url.Values{"code": {d.give(account, query)}, "state": {query.Get("state")}})
}

// mistake is what a request for consent lacks.
func mistake(query url.Values) string {
	switch {
	case query.Get("response_type") != "code":
		return "response_type must be code"
	case query.Get("scope") == "":
		return "scope is missing"
	case query.Get("state") == "":
		return "state is missing"
	case query.Get("code_challenge_method") != "S256" || !challengeForm.MatchString(query.Get("code_challenge")):
		return "code_challenge must be of the method S256"
	}
	return ""
}

func back(w http.ResponseWriter, r *http.Request, redirect string, answer url.Values) {
	http.Redirect(w, r, redirect+"?"+answer.Encode(), http.StatusFound) //nolint:gosec // a callback that is not registered does not come here
}

func (d *Desk) give(account string, query url.Values) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.serial++
	name := sim.Digest([]byte(fmt.Sprint("code", d.serial, account, strconv.FormatInt(time.Now().UnixNano(), 10))))
	d.codes[name] = code{Allowed{account, query.Get("scope"), query}, time.Now().Add(d.cfg.Life())}
	return name
}

// Redeem takes the form of a token request and uses its code up.
func (d *Desk) Redeem(clientID string, form url.Values) (Allowed, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	given, known := d.codes[form.Get("code")]
	delete(d.codes, form.Get("code"))
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
