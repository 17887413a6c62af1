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

// wholeSeconds returns nil if d is not positive.
func wholeSeconds(d time.Duration) *int {
	if d <= 0 {
		return nil
	}
	seconds := int(d / time.Second)
	return &seconds
}

var _ credential.Store = (*Store)(nil)
