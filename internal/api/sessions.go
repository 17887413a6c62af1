package api

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"autopost/internal/api/rest"
)

// People proves who people are. Refusals are problems.
type People interface {
	// SignIn begins a session of the person with this password.
	SignIn(r *http.Request, email, password string) (SignedIn, error)
	// Confirm proves the password of the person of a session again.
	Confirm(r *http.Request, caller rest.Key, password string) error
	// Me describes the person of a session.
	Me(r *http.Request) (Me, error)
}

// SignedIn is a new session.
type SignedIn struct {
	Cookie    *http.Cookie
	SessionID string
	// CSRF is what requests that change something send as X-Autopost-CSRF.
	CSRF string
}

// Me describes the caller.
type Me struct {
	WorkspaceID       string     `json:"workspace_id" example:"news" doc:"The workspace of this request."`
	Role              string     `json:"role" enum:"viewer,editor,approver,operator,owner" example:"editor" doc:"The role in the workspace."`
	Name              string     `json:"name" example:"Ann" doc:"The name of the person or of the key."`
	KeyID             string     `json:"key_id,omitempty" format:"uuid" doc:"The key; not set for a person."`
	Scopes            []string   `json:"scopes,omitempty" doc:"The scopes of the key, if it has any."`
	UserID            string     `json:"user_id,omitempty" format:"uuid" doc:"The person; not set for a key."`
	Email             string     `json:"email,omitempty" example:"ann@example.org" doc:"The address of the person."`
	Language          string     `json:"language,omitempty" example:"en" doc:"The language of the pages; not set: that of the browser."`
	InstallationOwner bool       `json:"installation_owner" doc:"Changes settings and creates workspaces."`
	SessionID         string     `json:"session_id,omitempty" format:"uuid" doc:"The session, for DELETE /api/v1/sessions/{session_id}."`
	Confirmed         bool       `json:"confirmed" doc:"The password was proved a short time ago (step_up_minutes)."`
	CSRF              string     `json:"csrf,omitempty" doc:"Send it as X-Autopost-CSRF with requests that change something."`
	Workspaces        []MyPlaces `json:"workspaces,omitempty" doc:"All workspaces of the person. Name one by X-Autopost-Workspace."`
}

// MyPlaces is a workspace of a person.
type MyPlaces struct {
	WorkspaceID string `json:"workspace_id" example:"news" doc:"The workspace."`
	Name        string `json:"name" example:"News" doc:"Its name."`
	Role        string `json:"role" enum:"viewer,editor,approver,operator,owner" example:"editor" doc:"The role of the person there."`
}

// Requested is the HTTP request of an operation.
type Requested struct{ r *http.Request }

// Resolve implements huma.Resolver.
func (q *Requested) Resolve(ctx huma.Context) []error {
	q.r, _ = humago.Unwrap(ctx)
	return nil
}

type sessionBegun struct {
	SessionID string `json:"session_id" format:"uuid" doc:"The session."`
	CSRF      string `json:"csrf" doc:"Send it as X-Autopost-CSRF with requests that change something."`
}

type signInInput struct {
	Requested
	Body struct {
		Email    string `json:"email" maxLength:"254" example:"ann@example.org" doc:"The address of the person."`
		Password string `json:"password" maxLength:"1000" format:"password" example:"correct horse battery" doc:"The password."`
	}
}

type stepUpInput struct {
	Requested
	Body struct {
		Password string `json:"password" maxLength:"1000" format:"password" example:"correct horse battery" doc:"The password."`
	}
}

type confirmation struct {
	Confirmed bool `json:"confirmed" doc:"true: the password is right."`
}

// SessionPath is a session in a path.
type SessionPath struct {
	SessionID string `path:"session_id" format:"uuid" doc:"A session of yours; GET /api/v1/me names this one."`
}

func registerSessions(d *server, people People) {
	rest.RegisterCookie(d.Server, rest.Operation{
		ID: "create-session", Method: http.MethodPost, Path: "/sessions", Summary: "Sign in", Status: http.StatusCreated, Answer: sessionBegun{},
		Example:     map[string]any{"email": "ann@example.org", "password": "correct horse battery"},
		Description: "Begins a session and sets its cookie. Requests that change something need csrf as X-Autopost-CSRF. Plain HTTP is accepted on this machine alone. Wrong passwords are limited by address and account.",
	}, func(ctx context.Context, in *signInInput) (rest.Reply, *http.Cookie, error) {
		begun, err := people.SignIn(in.r, in.Body.Email, in.Body.Password)
		if err != nil {
			return rest.Reply{}, nil, d.Fault(ctx, err)
		}
		body, err := json.Marshal(sessionBegun{begun.SessionID, begun.CSRF})
		return rest.Reply{Body: body}, begun.Cookie, err
	})
	rest.Register(d.Server, rest.Operation{
		ID: "end-session", Method: http.MethodDelete, Path: "/sessions/{session_id}", Summary: "Sign out", Answer: personChange{}, Description: "Ends a session of yours.",
	}, func(ctx context.Context, in *struct {
		rest.Once
		SessionPath
	}) (rest.Reply, error) {
		return d.Change(ctx, in.Once, in.SessionID, func(ctx context.Context, a rest.OperatorAction) (rest.Written, error) {
			return d.db.EndOwnSession(ctx, a, rest.Caller(ctx).UserID, in.SessionID)
		})
	})
	rest.Register(d.Server, rest.Operation{
		ID: "get-me", Method: http.MethodGet, Path: "/me", Summary: "Get the caller", Answer: Me{}, Description: "The person of the session with all workspaces, or the key.",
	}, func(ctx context.Context, in *Requested) (rest.Reply, error) {
		me := Me{}
		if caller := rest.Caller(ctx); caller.UserID == "" {
			me = Me{WorkspaceID: caller.WorkspaceID, Role: caller.Role, Name: caller.Name, KeyID: caller.KeyID, Scopes: caller.Scopes}
		} else {
			var err error
			if me, err = people.Me(in.r); err != nil {
				return rest.Reply{}, d.Fault(ctx, err)
			}
			me.WorkspaceID, me.Role = caller.WorkspaceID, caller.Role
		}
		body, err := json.Marshal(me)
		return rest.Reply{Body: body}, err
	})
	rest.Register(d.Server, rest.Operation{
		ID: "confirm-me", Method: http.MethodPost, Path: "/me/step-up", Summary: "Prove your password again", Answer: confirmation{},
		Example:     map[string]any{"password": "correct horse battery"},
		Description: "Dangerous operations need it once in step_up_minutes; without it they answer the problem step-up.",
	}, func(ctx context.Context, in *stepUpInput) (rest.Reply, error) {
		if err := people.Confirm(in.r, rest.Caller(ctx), in.Body.Password); err != nil {
			return rest.Reply{}, d.Fault(ctx, err)
		}
		return rest.Reply{Body: json.RawMessage(`{"confirmed": true}`)}, nil
	})
}

type newKeyInput struct {
	rest.AuditedWrite
	Body struct {
		Name      string   `json:"name" minLength:"1" maxLength:"200" example:"cms" doc:"The name of the key."`
		Role      string   `json:"role" enum:"viewer,editor,approver,operator,owner" example:"editor" doc:"The role of the key."`
		Scopes    []string `json:"scopes,omitempty" example:"[\"posts:write\"]" doc:"The allowed scopes; without them everything that the role may do."`
		ExpiresAt instant  `json:"expires_at,omitempty" doc:"When the key ends; without it never."`
		rest.Reasoned
	}
}

type keyCreated struct {
	Applied bool   `json:"applied"`
	ID      string `json:"id" format:"uuid" doc:"The key."`
	Key     string `json:"key,omitempty" example:"ap_Q2hh" doc:"The secret. It is returned once; a repeated request gets none."`
}

func registerNewKey(d *server) {
	rest.Register(d.Server, rest.Operation{
		ID: "create-key", Method: http.MethodPost, Path: "/keys", Summary: "Create an API key", Status: http.StatusCreated, Answer: keyCreated{},
		Example:     map[string]any{"name": "cms", "role": "editor", "scopes": []string{"posts:write"}, "reason": "the new site"},
		Description: "The answer has the secret, once. The database stores its SHA-256.",
	}, func(ctx context.Context, in *newKeyInput) (rest.Reply, error) {
		secret := "ap_" + rest.NewToken()
		reply, err := d.Do(ctx, in.AuditedWrite, rest.Change{Reason: in.Body.Reason, Subject: in.Body.Name}, func(ctx context.Context, a rest.OperatorAction) (rest.Written, error) {
			key := rest.NewKey{Name: in.Body.Name, Role: in.Body.Role, Scopes: in.Body.Scopes, ExpiresAt: in.Body.ExpiresAt}
			return d.db.CreateAPIKey(ctx, a, key, rest.TokenHash(secret))
		})
		return once(reply, err, map[string]any{"key": secret})
	})
}
