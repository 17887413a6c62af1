// Package web serves the pages: HTML that the server renders, over the operations of the API.
//
// It holds no invariant and no rule of the API. A page calls operations as the person who is signed in, so roles, checks
// and refusals are those of the API. Each page has one file; its markup is beside it in a file of templ, from which
// `make generate` makes a file of Go. Lists are fragments with an id, so that htmx can replace them.
package web

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"autopost/internal/api/rest"
	"autopost/internal/authlimit"
	"autopost/internal/oidc"
)

// timeout limits the work for one page.
const timeout = 20 * time.Second

// Operations runs operations of the API. *api.Server implements it.
type Operations interface {
	Call(ctx context.Context, caller rest.Key, method, target string, body any) (json.RawMessage, error)
}

// Store is what the pages need from the database; operations do the rest. *pg.Store implements it.
type Store interface {
	sessions
	people
	List(ctx context.Context, q rest.Query) ([]json.RawMessage, error)
}

type sessions interface {
	GetLogin(ctx context.Context, email string) (*Login, error)
	BeginSession(ctx context.Context, user, tokenHash string) (Done, error)
	ResolveSession(ctx context.Context, tokenHash string) (*Session, error)
	ConfirmSession(ctx context.Context, tokenHash string) (Done, error)
	EndSession(ctx context.Context, tokenHash string) (Done, error)
	EndSessions(ctx context.Context, a rest.OperatorAction, user string) (rest.Written, error)
}

type people interface {
	ListUsers(ctx context.Context, email string, limit int) ([]json.RawMessage, error)
	CreateOwner(ctx context.Context, workspace, tokenHash string, p NewPerson) (Done, error)
	GetInvitation(ctx context.Context, tokenHash string) (*Invitation, error)
	AcceptInvitation(ctx context.Context, tokenHash, user string, p NewPerson) (Done, error)
	AdmitPerson(ctx context.Context, email, name string) (Done, error)
}

// Done is the answer to a change.
type Done struct {
	Applied bool `json:"applied"`
	// Reason is the cause of a refusal, such as unknown_link or users_exist.
	Reason      string `json:"reason"`
	UserID      string `json:"user_id"`
	WorkspaceID string `json:"workspace_id"`
	// Created means that the first person made a new workspace.
	Created bool `json:"created"`
}

// NewPerson describes a person who gets an account.
type NewPerson struct {
	Email        string `json:"email,omitempty"`
	Name         string `json:"name"`
	PasswordHash string `json:"password_hash"`
}

// Login is what a sign-in is checked against.
type Login struct {
	UserID       string `json:"user_id"`
	PasswordHash string `json:"password_hash"`
}

// Session is a session of a person.
type Session struct {
	SessionID string `json:"session_id"`
	UserID    string `json:"user_id"`
	Name      string `json:"name"`
	Email     string `json:"email"`
	Language  string `json:"language"`
	// InstallationOwner means that the person owns the installation, not only a workspace.
	InstallationOwner bool `json:"installation_owner"`
	// Confirmed means that the password was checked a short time ago.
	Confirmed  bool         `json:"confirmed"`
	Workspaces []Membership `json:"workspaces"`
}

// Membership is a workspace of a person.
type Membership struct {
	WorkspaceID string `json:"workspace_id"`
	Name        string `json:"name"`
	Role        string `json:"role"`
}

// Invitation is what a link leads to.
type Invitation struct {
	// Kind is first or invitation. A first link has no other field.
	Kind        string `json:"kind"`
	WorkspaceID string `json:"workspace_id"`
	Workspace   string `json:"workspace"`
	Email       string `json:"email"`
	Role        string `json:"role"`
	// UserID and PasswordHash are those of a person who exists.
	UserID       string `json:"user_id"`
	PasswordHash string `json:"password_hash"`
}

// Accounts finishes the link of an account.
type Accounts interface {
	// FinishLink takes the link of a state, once, and stores the secret that the code gives; "" is the refusal of the
	// owner. operator is "user:ID", or "" without a session.
	FinishLink(ctx context.Context, state, code, operator string) (Linked, error)
}

// Linked is the end of a link. AuthRef is "" if the state is unknown.
type Linked struct {
	Workspace, AuthRef, Platform string
	OK                           bool
	// Refused is why the platform or the database did not accept the code.
	Refused string
}

// Deps are the dependencies of the pages.
type Deps struct {
	Store    Store
	API      Operations
	Accounts Accounts
	// Changes keeps open pages up to date. Without it they are as they were loaded.
	Changes Changes
	// Identity signs people in by OpenID Connect; nil without a provider.
	Identity *oidc.Provider
	// Once returns the person of a link that signs in once, by the SHA-256 of its token; "" for an unknown one. nil
	// means that there are no such links.
	Once func(tokenHash string) (user string)
	// Logins limits wrong passwords; the pages and the API share it. nil makes an own one.
	Logins *authlimit.Logins
	// PublicURL is the address of the daemon for people; "" if unknown.
	PublicURL string
	Log       *slog.Logger
}

// server serves the pages.
type server struct {
	Deps

	public *url.URL
	logins *authlimit.Logins
	origin *http.CrossOriginProtection
	mux    *http.ServeMux
	live   *live
	looks  looks
}

// newServer returns a server. origin accepts forms of this daemon alone.
func newServer(deps Deps) *server {
	s := &server{Deps: deps, logins: cmp.Or(deps.Logins, &authlimit.Logins{}), origin: http.NewCrossOriginProtection()}
	if public, err := url.Parse(deps.PublicURL); err == nil && public.Host != "" {
		s.public = public
		_ = s.origin.AddTrustedOrigin(public.Scheme + "://" + public.Host) // config has checked the URL
	}
	return s
}

// Handler serves the pages. Requests for other paths go to next.
func Handler(deps Deps, next http.Handler) http.Handler {
	s := newServer(deps)
	mux := http.NewServeMux()
	s.mux = mux
	if deps.Changes != nil {
		s.live = newLive(deps.Changes)
	}
	s.routes(mux)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := mux.Handler(r); (pattern == "" || pattern == "/") && !ours(r.URL.Path) {
			next.ServeHTTP(w, r)
			return
		}
		secure(w.Header())
		if r.URL.Path != livePath && !hasFiles(r) { // they have bounds of their own
			ctx, cancel := context.WithTimeout(r.Context(), timeout)
			defer cancel()
			r = r.WithContext(ctx)
		}
		mux.ServeHTTP(w, r)
	})
}

// folders are the first parts of the paths of pages. An unknown path below one of them is a page that says so.
var folders = []string{"posts", "decisions", "channels", "setup", "login", "invite", "assets", "find", "live", "operations", "oauth", "submissions", "compose", "calendar", "x-posts", "admin", "bot"}

func ours(path string) bool {
	for _, folder := range folders {
		if path == "/"+folder || strings.HasPrefix(path, "/"+folder+"/") {
			return true
		}
	}
	return false
}

// secure sets the headers of every page.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "+
		"form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
}

func (s *server) routes(mux *http.ServeMux) {
	mux.HandleFunc("GET /assets/", s.serveAsset)
	mux.HandleFunc("GET /login", s.open(s.showLogin))
	mux.HandleFunc("POST /login", s.open(s.login))
	mux.HandleFunc("GET /invite/{token}", s.open(s.showInvitation))
	mux.HandleFunc("POST /invite/{token}", s.open(s.accept))
	mux.HandleFunc("POST /preferences", s.open(s.prefer))

	mux.HandleFunc("POST /logout", s.signed(s.logout))
	mux.HandleFunc("POST /logout-everywhere", s.signed(s.logoutEverywhere))
	mux.HandleFunc("POST /workspace", s.signed(s.chooseWorkspace))

	mux.HandleFunc("GET "+livePath, s.signed(s.follow))
	mux.HandleFunc("GET /find", s.signed(s.find))
	mux.HandleFunc("GET /{$}", s.signed(s.overview))
	mux.HandleFunc("GET /posts", s.signed(s.posts))
	mux.HandleFunc("GET /posts/{message_id}", s.signed(s.post))
	mux.HandleFunc("POST /posts/{message_id}/{act}", s.signed(s.actOnPost))
	mux.HandleFunc("POST /posts/{message_id}/change/{kind}", s.signed(s.changePost))
	s.composeRoutes(mux)
	s.submissionRoutes(mux)
	s.calendarRoutes(mux)
	mux.HandleFunc("GET /decisions", s.signed(s.decisions))
	mux.HandleFunc("GET /decisions/{submission_id}", s.signed(s.decisions))
	mux.HandleFunc("POST /decisions/{submission_id}/{act}", s.signed(s.decide))
	mux.HandleFunc("GET /channels", s.signed(s.channels))
	s.operationsRoutes(mux)
	s.xpostsRoutes(mux)
	s.botRoutes(mux)
	mux.HandleFunc("GET /setup", s.signed(s.setup))
	mux.HandleFunc("GET /setup/people", s.signed(s.people))
	mux.HandleFunc("POST /setup/people/{act}", s.signed(s.actOnPeople))
	mux.HandleFunc("GET /setup/keys", s.signed(s.keys))
	mux.HandleFunc("POST /setup/keys/{act}", s.signed(s.actOnKeys))
	s.setupRoutes(mux)
	s.credentialsRoutes(mux)
	s.firstRoutes(mux)
	s.identityRoutes(mux)
	mux.HandleFunc("GET /login/once/{token}", s.open(s.signInOnce))
	mux.HandleFunc("/", s.open(func(v *view) { v.fail(errNotFound) }))
}
