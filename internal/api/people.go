package api

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"autopost/internal/api/rest"
	"autopost/internal/problem"
)

type user struct {
	UserID            string    `json:"user_id" format:"uuid" doc:"The person."`
	Email             string    `json:"email" example:"ann@example.org" doc:"The address for the sign-in."`
	Name              string    `json:"name" example:"Ann" doc:"The name that pages show."`
	Role              string    `json:"role" enum:"viewer,editor,approver,operator,owner" example:"editor" doc:"The role in this workspace."`
	Enabled           bool      `json:"enabled" doc:"false if the person cannot sign in."`
	InstallationOwner bool      `json:"installation_owner" doc:"Changes settings and creates workspaces."`
	Since             time.Time `json:"since" doc:"When the person joined the workspace."`
}

type invitation struct {
	InvitationID string    `json:"invitation_id" format:"uuid" doc:"The invitation."`
	Email        string    `json:"email" example:"ann@example.org" doc:"The invited address."`
	Role         string    `json:"role" enum:"viewer,editor,approver,operator,owner" example:"editor" doc:"The role that the person gets."`
	InvitedBy    string    `json:"invited_by" example:"user:6f1c2a52-8a0b-4a51-9d0e-6e1f9a3d2b10" doc:"Who invited."`
	CreatedAt    time.Time `json:"created_at"`
	ExpiresAt    time.Time `json:"expires_at"`
}

type invited struct {
	Applied   bool      `json:"applied"`
	ID        string    `json:"id" format:"uuid" doc:"The invitation."`
	Email     string    `json:"email" example:"ann@example.org" doc:"The invited address."`
	ExpiresAt time.Time `json:"expires_at"`
	Path      string    `json:"path,omitempty" example:"/invite/Q2hh" doc:"The path of the link on this server. It is returned once; a repeated request gets none."`
}

// UserPath is a person in a path.
type UserPath struct {
	UserID string `path:"user_id" format:"uuid" doc:"The person."`
}

type userInput struct {
	rest.AuditedWrite
	rest.Dry
	UserPath
	Body struct {
		Role              *string `json:"role,omitempty" nullable:"true" enum:"viewer,editor,approver,operator,owner" doc:"The role in this workspace; null ends the membership."`
		Leave             bool    `json:"leave,omitempty" doc:"true ends the membership."`
		Enabled           *bool   `json:"enabled,omitempty" doc:"false signs the person out and refuses the sign-in. Only for owners of the installation."`
		InstallationOwner *bool   `json:"installation_owner,omitempty" doc:"Only for owners of the installation."`
		rest.Reasoned
	}
}

type invitationInput struct {
	rest.AuditedWrite
	Body struct {
		Email string `json:"email" maxLength:"254" example:"ann@example.org" doc:"The address of the person."`
		Role  string `json:"role" enum:"viewer,editor,approver,operator,owner" example:"editor" doc:"The role that the person gets."`
		rest.Reasoned
	}
}

// InvitationPath is an invitation in a path.
type InvitationPath struct {
	InvitationID string `path:"invitation_id" format:"uuid" doc:"The invitation."`
}

// personChange is the answer to a change of a person.
type personChange struct {
	Applied bool           `json:"applied"`
	DryRun  bool           `json:"dry_run,omitempty"`
	Reason  string         `json:"reason,omitempty" example:"unchanged"`
	Before  map[string]any `json:"before,omitempty"`
	After   map[string]any `json:"after,omitempty"`
	_       struct{}       `additionalProperties:"true"`
}

var (
	users       = rest.List{Function: "list_members", Key: rest.ByID("user_id")}
	invitations = rest.List{Function: "list_invitations", Key: rest.ByID("invitation_id")}
)

const noSuchUser = "This workspace has no such person."

func registerUsers(d *server) {
	rest.Register(d.Server, rest.Operation{
		ID: "list-users", Method: http.MethodGet, Path: "/users", Summary: "List the people of the workspace", Answer: rest.Listed[user]{},
		Description: "The people with a role in the workspace, newest account first.",
	}, func(ctx context.Context, in *struct{ rest.Page }) (rest.Reply, error) {
		return d.Read(ctx, users, in.Page, nil)
	})
	rest.Register(d.Server, rest.Operation{
		ID: "get-user", Method: http.MethodGet, Path: "/users/{user_id}", Summary: "Get a person of the workspace", Answer: user{}, Description: "One person, with the role in the workspace.",
	}, func(ctx context.Context, in *UserPath) (rest.Reply, error) {
		return d.One(ctx, noSuchUser, d.userQuery(in.UserID))
	})
	rest.Register(d.Server, rest.Operation{
		ID: "put-user", Method: http.MethodPatch, Path: "/users/{user_id}", Summary: "Change the role or the account of a person", Answer: personChange{},
		Example:     map[string]any{"role": "approver", "reason": "now decides about posts"},
		Description: "role changes the role in the workspace, leave ends the membership. enabled and installation_owner change the account and are for owners of the installation. The last owner stays.",
	}, func(ctx context.Context, in *userInput) (rest.Reply, error) { return d.putUser(ctx, in) })
	rest.Register(d.Server, rest.Operation{
		ID: "sign-out-user", Method: http.MethodPost, Path: "/users/{user_id}/sign-out", Summary: "End all sessions of a person", Answer: personChange{}, Example: reasonExample,
		Description: "Your own sessions, or as an owner of the installation those of another person.",
	}, func(ctx context.Context, in *struct {
		rest.AuditedWrite
		UserPath
		Body *rest.Reasoned
	}) (rest.Reply, error) {
		if caller := rest.Caller(ctx); in.UserID != caller.UserID && !caller.InstallationOwner {
			return rest.Reply{}, problem.NotAllowed.Says("Only an owner of the installation signs others out.")
		}
		return d.Do(ctx, in.AuditedWrite, rest.Change{Reason: why(in.Body), Subject: in.UserID}, func(ctx context.Context, a rest.OperatorAction) (rest.Written, error) {
			return d.db.EndSessions(ctx, a, in.UserID)
		})
	})
}

func (d *server) userQuery(id string) rest.Query {
	return rest.Query{Function: users.Function, Filter: map[string]any{"user_id": id}}
}

func (d *server) putUser(ctx context.Context, in *userInput) (rest.Reply, error) {
	b := in.Body
	account := map[string]bool{}
	if b.Enabled != nil {
		account["enabled"] = *b.Enabled
	}
	if b.InstallationOwner != nil {
		account["installation_owner"] = *b.InstallationOwner
	}
	member := b.Role != nil || b.Leave
	switch {
	case len(account) > 0 == member:
		return rest.Reply{}, rest.Wrong("body", "must have either role or leave, or fields of the account", "send two requests")
	case b.Role != nil && b.Leave:
		return rest.Reply{}, rest.Wrong("body.leave", "must not be true together with role", "send one of them")
	case len(account) > 0 && !rest.Caller(ctx).InstallationOwner:
		return rest.Reply{}, problem.NotAllowed.Says("Only an owner of the installation changes accounts.")
	}
	// Accounts belong to the installation. Only those of the workspace are known here.
	if _, err := d.One(ctx, noSuchUser, d.userQuery(in.UserID)); err != nil {
		return rest.Reply{}, err
	}
	return d.Do(ctx, in.AuditedWrite, rest.Change{Reason: b.Reason, DryRun: in.DryRun, Subject: in.UserID}, func(ctx context.Context, a rest.OperatorAction) (rest.Written, error) {
		if len(account) > 0 {
			return d.db.PutUser(ctx, a, in.UserID, account)
		}
		role := ""
		if b.Role != nil {
			role = *b.Role
		}
		return d.db.PutMembership(ctx, a, in.UserID, role)
	})
}

func registerInvitations(d *server) {
	rest.Register(d.Server, rest.Operation{
		ID: "list-invitations", Method: http.MethodGet, Path: "/invitations", Summary: "List open invitations, newest first", Answer: rest.Listed[invitation]{},
		Description: "Invitations that were neither accepted nor revoked. Their links are not returned.",
	}, func(ctx context.Context, in *struct{ rest.Page }) (rest.Reply, error) {
		return d.Read(ctx, invitations, in.Page, nil)
	})
	rest.Register(d.Server, rest.Operation{
		ID: "create-invitation", Method: http.MethodPost, Path: "/invitations", Summary: "Invite a person", Status: http.StatusCreated, Answer: invited{},
		Example:     map[string]any{"email": "ann@example.org", "role": "approver", "reason": "a new moderator"},
		Description: "Returns the path of a link that works once, for a week. It replaces an earlier one for the same address. Send the link yourself.",
	}, func(ctx context.Context, in *invitationInput) (rest.Reply, error) {
		token := rest.NewToken()
		reply, err := d.Do(ctx, in.AuditedWrite, rest.Change{Reason: in.Body.Reason, Subject: in.Body.Email}, func(ctx context.Context, a rest.OperatorAction) (rest.Written, error) {
			return d.db.InviteUser(ctx, a, in.Body.Email, in.Body.Role, rest.TokenHash(token))
		})
		return once(reply, err, map[string]any{"path": "/invite/" + token})
	})
	rest.Register(d.Server, rest.Operation{
		ID: "remove-invitation", Method: http.MethodDelete, Path: "/invitations/{invitation_id}", Summary: "Revoke an invitation", Answer: personChange{},
		Description: "Its link works no more. The reason is in X-Autopost-Reason.",
	}, func(ctx context.Context, in *struct {
		rest.AuditedWrite
		InvitationPath
	}) (rest.Reply, error) {
		if in.HeaderReason == "" {
			in.HeaderReason = "revoked"
		}
		return d.Do(ctx, in.AuditedWrite, rest.Change{Subject: in.InvitationID}, func(ctx context.Context, a rest.OperatorAction) (rest.Written, error) {
			return d.db.RevokeInvitation(ctx, a, in.InvitationID)
		})
	})
}

// once adds fields to an answer that must be neither stored nor repeated, such as a secret.
func once(reply rest.Reply, err error, fields map[string]any) (rest.Reply, error) {
	if err != nil || reply.IsReplayed() {
		return reply, err
	}
	answer := map[string]any{}
	if err := json.Unmarshal(reply.Body, &answer); err != nil {
		return reply, err
	}
	for name, value := range fields {
		answer[name] = value
	}
	reply.Body, err = json.Marshal(answer)
	return reply, err
}

type newWorkspaceInput struct {
	rest.AuditedWrite
	rest.Dry
	Body struct {
		WorkspaceID string `json:"workspace_id" minLength:"1" maxLength:"200" example:"acme" doc:"The id of the new workspace; it never changes."`
		Name        string `json:"name,omitempty" maxLength:"100" example:"Acme" doc:"The name that pages show."`
		rest.Reasoned
	}
}

type workspaceCreated struct {
	Applied     bool   `json:"applied"`
	DryRun      bool   `json:"dry_run"`
	WorkspaceID string `json:"workspace_id" example:"acme" doc:"The new workspace."`
}

func registerNewWorkspace(d *server) {
	rest.Register(d.Server, rest.Operation{
		ID: "create-workspace", Method: http.MethodPost, Path: "/workspaces", Summary: "Create a workspace", Status: http.StatusCreated, Answer: workspaceCreated{},
		Example:     map[string]any{"workspace_id": "acme", "name": "Acme", "reason": "a new customer"},
		Description: "You become its owner. Name it by X-Autopost-Workspace in further requests.",
	}, func(ctx context.Context, in *newWorkspaceInput) (rest.Reply, error) {
		reason, err := in.Why(in.Body.Reason)
		if err != nil {
			return rest.Reply{}, err
		}
		return d.Change(ctx, rest.Once{}, in.Body.WorkspaceID, func(ctx context.Context, a rest.OperatorAction) (rest.Written, error) {
			a.Workspace, a.Reason, a.DryRun = in.Body.WorkspaceID, reason, in.DryRun
			return d.db.CreateWorkspace(ctx, a, strings.TrimSpace(in.Body.Name), rest.Caller(ctx).UserID)
		})
	})
}
