package pg

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"autopost"
	"autopost/internal/credential"
)

// GetCredential returns nil for a credential that is not bound.
func (s *Store) GetCredential(ctx context.Context, workspace, authRef string) (*credential.Bound, error) {
	c, err := call[*credential.Bound](ctx, s, `select * from autopost.get_credential($1, $2)`, workspace, authRef)
	if err != nil {
		return nil, fmt.Errorf("get credential ws=%s: %w", workspace, err)
	}
	return c, nil
}

// BeginRefresh asks for the lease of a renewal. refused is the failure that caused it; nil for a renewal ahead of time.
func (s *Store) BeginRefresh(ctx context.Context, workspace string, use credential.InUse, refused *autopost.Error) (credential.Lease, error) {
	l, err := call[credential.Lease](ctx, s, `select * from autopost.begin_refresh($1, $2, $3, $4, $5, nullif($6, ''))`,
		workspace, use.AuthRef, use.Version, use.Source, refused, s.runID)
	if err != nil {
		return l, fmt.Errorf("begin refresh ws=%s: %w", workspace, err)
	}
	return l, nil
}

// FinishRefresh activates a renewed secret; false means that another one came first.
func (s *Store) FinishRefresh(ctx context.Context, workspace, authRef string, sealed credential.SealedSecret, validFor time.Duration) (bool, error) {
	a, err := call[struct{ Applied bool }](ctx, s, `select * from autopost.finish_refresh($1, $2, $3, $4)`, workspace, authRef, sealed, wholeSeconds(validFor))
	if err != nil {
		return false, fmt.Errorf("finish refresh ws=%s: %w", workspace, err)
	}
	return a.Applied, nil
}

// FailRefresh records why the renewal with this token failed.
func (s *Store) FailRefresh(ctx context.Context, workspace string, use credential.InUse, token string, failure autopost.Error) error {
	_, err := call[json.RawMessage](ctx, s, `select * from autopost.fail_refresh($1, $2, $3, $4, $5, $6)`,
		workspace, use.AuthRef, token, use.Version, use.Source, failure)
	if err != nil {
		return fmt.Errorf("fail refresh ws=%s: %w", workspace, err)
	}
	return nil
}

// RemoveCredential removes a credential that nothing uses.
func (s *Store) RemoveCredential(ctx context.Context, a OperatorAction, authRef string) (Written, error) {
	return s.write(ctx, a, `autopost.remove_credential(@workspace, @id, @operator, @reason, @dry_run)`, args{"id": authRef})
}

// LinkToBegin is what the answer of a platform about an account needs.
type LinkToBegin struct {
	Platform  string                  `json:"platform"`
	StateHash string                  `json:"state_hash"`
	Redirect  string                  `json:"redirect"`
	Sealed    credential.SealedSecret `json:"sealed"`
	Requeue   bool                    `json:"requeue"`
}

// BeginCredentialLink stores a link of an account that waits for its owner.
func (s *Store) BeginCredentialLink(ctx context.Context, a OperatorAction, authRef string, link LinkToBegin) (Written, error) {
	return s.write(ctx, a, `autopost.begin_credential_link(@workspace, @id, @fields, @operator, @reason)`, args{"id": authRef, "fields": link})
}

// TakenLink is a link whose owner answered.
type TakenLink struct {
	LinkToBegin

	Workspace string `json:"workspace_id"`
	AuthRef   string `json:"auth_ref"`
	Operator  string `json:"operator"`
	Reason    string `json:"reason"`
}

// TakeCredentialLink takes the link with this SHA-256 of its state, once; nil without one. operator is "user:ID", or ""
// for a browser without a session.
func (s *Store) TakeCredentialLink(ctx context.Context, stateHash, operator string) (*TakenLink, error) {
	link, err := call[*TakenLink](ctx, s, `select * from autopost.take_credential_link($1, $2)`, stateHash, operator)
	if err != nil {
		return nil, fmt.Errorf("take credential link: %w", err)
	}
	return link, nil
}

// DiscoverChats records the chats that waiting updates of a bot name.
func (s *Store) DiscoverChats(ctx context.Context, workspace, authRef string, updates []json.RawMessage) error {
	all, err := json.Marshal(updates)
	if err != nil {
		return fmt.Errorf("discover chats of %s ws=%s: %w", authRef, workspace, err)
	}
	if _, err := call[json.RawMessage](ctx, s, `select * from autopost.discover_chats($1, $2, $3)`, workspace, authRef, json.RawMessage(all)); err != nil {
		return fmt.Errorf("discover chats of %s ws=%s: %w", authRef, workspace, err)
	}
	return nil
}

// wholeSeconds returns nil if d is not positive.
func wholeSeconds(d time.Duration) *int {
	if d <= 0 {
		return nil
	}
	seconds := int(d / time.Second)
	return &seconds
}

var _ credential.Store = (*Store)(nil)
