package pg

import (
	"context"
	"encoding/json"
	"fmt"

	"autopost/internal/web"
)

// PeopleAnswer is the answer to a change of people.
type PeopleAnswer struct {
	Applied bool `json:"applied"`
	// Reason is the cause of a refusal, such as unknown_user, unchanged or last_owner.
	Reason string `json:"reason"`
	UserID string `json:"user_id"`
	ID     string `json:"id"`
	Email  string `json:"email"`
	Ended  int    `json:"ended"`
	whole
}

// BeginFirstLink stores the link of the first person by the SHA-256 of its token. It returns false if there are users.
func (s *Store) BeginFirstLink(ctx context.Context, tokenHash string) (bool, error) {
	answer, err := call[web.Done](ctx, s, `select * from autopost.begin_first_link($1)`, tokenHash)
	if err != nil {
		return false, fmt.Errorf("begin first link: %w", err)
	}
	return answer.Applied, nil
}

// CreateOwner adds the first person as owner of the installation and of a workspace.
func (s *Store) CreateOwner(ctx context.Context, workspace, tokenHash string, p web.NewPerson) (web.Done, error) {
	answer, err := call[web.Done](ctx, s, `select * from autopost.create_owner($1, $2, $3)`, workspace, tokenHash, p)
	if err != nil {
		return answer, fmt.Errorf("create owner ws=%s: %w", workspace, err)
	}
	return answer, nil
}

// PutUser adds a person (user is "") or changes fields of one.
func (s *Store) PutUser(ctx context.Context, a OperatorAction, user string, fields any) (Written, error) {
	return s.write(ctx, a, `autopost.put_user(nullif(@user::text, '')::uuid, @fields, @operator, @reason, @dry_run)`, args{"user": user, "fields": fields})
}

// PutMembership gives a person a role in a workspace; "" ends the membership.
func (s *Store) PutMembership(ctx context.Context, a OperatorAction, user, role string) (Written, error) {
	return s.write(ctx, a, `autopost.put_membership(@workspace, @user::text::uuid, nullif(@role::text, ''), @operator, @reason, @dry_run)`, args{"user": user, "role": role})
}

// InviteUser invites a person by the SHA-256 of the token of a link.
func (s *Store) InviteUser(ctx context.Context, a OperatorAction, email, role, tokenHash string) (Written, error) {
	return s.write(ctx, a, `autopost.invite_user(@workspace, jsonb_build_object('email', @email::text, 'role', @role::text), @token_hash, @operator, @reason)`,
		args{"email": email, "role": role, "token_hash": tokenHash})
}

// RevokeInvitation ends an invitation.
func (s *Store) RevokeInvitation(ctx context.Context, a OperatorAction, invitation string) (Written, error) {
	return s.write(ctx, a, `autopost.revoke_invitation(@workspace, @invitation::text::uuid, @operator, @reason)`, args{"invitation": invitation})
}

// GetInvitation returns the invitation or first link with this SHA-256 of its token; nil without one.
func (s *Store) GetInvitation(ctx context.Context, tokenHash string) (*web.Invitation, error) {
	answer, err := call[*web.Invitation](ctx, s, `select * from autopost.get_invitation($1)`, tokenHash)
	if err != nil {
		return nil, fmt.Errorf("get invitation: %w", err)
	}
	return answer, nil
}

// AcceptInvitation makes a person a member. user is "" for a new person.
func (s *Store) AcceptInvitation(ctx context.Context, tokenHash, user string, p web.NewPerson) (web.Done, error) {
	answer, err := call[web.Done](ctx, s, `select * from autopost.accept_invitation($1, nullif($2::text, '')::uuid, $3)`, tokenHash, user, p)
	if err != nil {
		return answer, fmt.Errorf("accept invitation: %w", err)
	}
	return answer, nil
}

// AdmitPerson returns the person with an e-mail address that an identity provider verified. Open invitations for the
// address are accepted.
func (s *Store) AdmitPerson(ctx context.Context, email, name string) (web.Done, error) {
	return s.done(ctx, "admit person", `select * from autopost.admit_person($1, $2)`, email, name)
}

// CreateWorkspace adds the workspace of a, with a person as its owner.
func (s *Store) CreateWorkspace(ctx context.Context, a OperatorAction, name, user string) (Written, error) {
	return s.write(ctx, a, `autopost.create_workspace(@workspace, @name, @user::text::uuid, @operator, @reason, @dry_run)`, args{"name": name, "user": user})
}

// GetLogin returns the password hash of an enabled person; nil without one.
func (s *Store) GetLogin(ctx context.Context, email string) (*web.Login, error) {
	answer, err := call[*web.Login](ctx, s, `select * from autopost.get_login($1)`, email)
	if err != nil {
		return nil, fmt.Errorf("get login: %w", err)
	}
	return answer, nil
}

// BeginSession begins a session of a person who has proved the password.
func (s *Store) BeginSession(ctx context.Context, user, tokenHash string) (web.Done, error) {
	return s.done(ctx, "begin session", `select * from autopost.begin_session($1::text::uuid, $2)`, user, tokenHash)
}

// ResolveSession returns the session with this SHA-256 of its token; nil without one.
func (s *Store) ResolveSession(ctx context.Context, tokenHash string) (*web.Session, error) {
	answer, err := call[*web.Session](ctx, s, `select * from autopost.resolve_session($1)`, tokenHash)
	if err != nil {
		return nil, fmt.Errorf("resolve session: %w", err)
	}
	return answer, nil
}

// ConfirmSession records that the person of a session proved the password again.
func (s *Store) ConfirmSession(ctx context.Context, tokenHash string) (web.Done, error) {
	return s.done(ctx, "confirm session", `select * from autopost.confirm_session($1)`, tokenHash)
}

// EndSession ends a session.
func (s *Store) EndSession(ctx context.Context, tokenHash string) (web.Done, error) {
	return s.done(ctx, "end session", `select * from autopost.end_session($1)`, tokenHash)
}

// EndOwnSession ends a session of a person by its id.
func (s *Store) EndOwnSession(ctx context.Context, a OperatorAction, user, session string) (Written, error) {
	return s.write(ctx, a, `autopost.end_own_session(@user::text::uuid, @session::text::uuid)`, args{"user": user, "session": session})
}

// EndSessions signs a person out everywhere.
func (s *Store) EndSessions(ctx context.Context, a OperatorAction, user string) (Written, error) {
	return s.write(ctx, a, `autopost.end_sessions(@user::text::uuid, @operator, @reason)`, args{"user": user})
}

func (s *Store) done(ctx context.Context, what, sql string, arguments ...any) (web.Done, error) {
	answer, err := call[web.Done](ctx, s, sql, arguments...)
	if err != nil {
		return answer, fmt.Errorf("%s: %w", what, err)
	}
	return answer, nil
}

// ListUsers returns the people of the installation by e-mail address; only one if email is not "". limit is 1 to 10,000.
func (s *Store) ListUsers(ctx context.Context, email string, limit int) ([]json.RawMessage, error) {
	filter := map[string]string{}
	if email != "" {
		filter["email"] = email
	}
	rows, err := query(ctx, s, `select r from autopost.list_users($1, $2) r`, filter, limit)
	if err != nil {
		return nil, fmt.Errorf("list users: %w", err)
	}
	list := make([]json.RawMessage, len(rows))
	for i, row := range rows {
		list[i] = row.raw
	}
	return list, nil
}

var _ web.Store = (*Store)(nil)
