package demo

import (
	"context"
	"encoding/json"
	"fmt"

	"autopost/internal/password"
	"autopost/internal/pg"
)

// The person of the demo. The password is public, as the demo listens on this machine alone.
const (
	demoEmail    = "demo@example.org"
	demoPassword = "simulated platforms"
)

// signIn returns a link that signs in as the owner of the demo, once. A kept data directory has this person already.
func (d *demo) signIn(ctx context.Context) (string, error) {
	store := d.daemon.Store()
	known, err := store.ListUsers(ctx, demoEmail, 1)
	if err != nil {
		return "", err
	}
	var person struct {
		UserID string `json:"user_id"`
	}
	if len(known) > 0 {
		if err := json.Unmarshal(known[0], &person); err != nil {
			return "", fmt.Errorf("read the person of the demo: %w", err)
		}
		return d.daemon.SignInLink(person.UserID), nil
	}
	hash, err := password.Hash(ctx, demoPassword)
	if err != nil {
		return "", err
	}
	act := pg.OperatorAction{Workspace: workspaceID, Operator: "demo", Reason: "the pages of the demo"}
	made, err := pg.Decode[pg.PeopleAnswer](store.PutUser(ctx, act, "", map[string]any{"email": demoEmail, "name": "Demo", "installation_owner": true, "password_hash": hash}))
	if err != nil {
		return "", err
	}
	if _, err := store.PutMembership(ctx, act, made.UserID, "owner"); err != nil {
		return "", err
	}
	return d.daemon.SignInLink(made.UserID), nil
}
