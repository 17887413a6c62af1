package pg

import (
	"context"
	"encoding/json"
	"fmt"
)

// APIKey is what resolve_api_key answers.
type APIKey struct {
	WorkspaceID string `json:"workspace_id"`
	KeyID       string `json:"key_id"`
	Role        string `json:"role"`
}

// ResolveAPIKey finds the enabled key of a secret's SHA-256; nil when there is none.
func (s *Store) ResolveAPIKey(ctx context.Context, secretHash string) (*APIKey, error) {
	key, err := call[*APIKey](ctx, s, `select * from autopost.resolve_api_key($1)`, secretHash)
	if err != nil {
		return nil, fmt.Errorf("resolve api key: %w", err)
	}
	return key, nil
}

// AddAPIKey adds a key by the SHA-256 of its secret and returns its id.
func (s *Store) AddAPIKey(ctx context.Context, workspace, name, role, secretHash string) (string, error) {
	a, err := call[struct{ ID string }](ctx, s, `select * from autopost.add_api_key($1, $2, $3, $4)`, workspace, name, role, secretHash)
	if err != nil {
		return "", fmt.Errorf("add api key ws=%s: %w", workspace, err)
	}
	return a.ID, nil
}

// PutSetting changes a value that functions decide by.
func (s *Store) PutSetting(ctx context.Context, key string, value int) error {
	_, err := call[json.RawMessage](ctx, s, `select * from autopost.put_setting($1, $2)`, key, value)
	if err != nil {
		return fmt.Errorf("put setting %s: %w", key, err)
	}
	return nil
}
