package api

import (
	"context"
	"net/http"
	"time"

	"autopost/internal/api/rest"
)

type apiKey struct {
	KeyID      string    `json:"key_id" format:"uuid"`
	Name       string    `json:"name" example:"ci"`
	Role       string    `json:"role" enum:"viewer,editor,approver,operator,owner" example:"editor"`
	Scopes     []string  `json:"scopes" nullable:"false" example:"[\"posts:write\"]" doc:"The allowed scopes; empty means everything that the role may do."`
	Enabled    bool      `json:"enabled"`
	ExpiresAt  instant   `json:"expires_at" nullable:"true"`
	LastUsedAt instant   `json:"last_used_at" nullable:"true" doc:"Accurate to the hour."`
	ReplacedBy *string   `json:"replaced_by" format:"uuid" nullable:"true" doc:"The key that replaced it."`
	CreatedAt  time.Time `json:"created_at"`
}

// KeyPath is the key in a path.
type KeyPath struct {
	KeyID string `path:"key_id" format:"uuid"`
}

type keyActInput struct {
	rest.AuditedWrite
	rest.Dry
	KeyPath
	Body *rest.Reasoned
}

type keyChange struct {
	Applied bool           `json:"applied"`
	DryRun  bool           `json:"dry_run"`
	Reason  string         `json:"reason,omitempty" example:"unchanged"`
	Before  map[string]any `json:"before,omitempty"`
	After   map[string]any `json:"after,omitempty"`
}

var keys = rest.List{Function: "list_api_keys", Key: rest.ByID("key_id")}

func registerKeys(d *server) {
	rest.Register(d.Server, rest.Operation{
		ID: "list-keys", Method: http.MethodGet, Path: "/keys", Summary: "List API keys, newest first", Answer: rest.Listed[apiKey]{},
		Description: "Includes disabled and expired keys. Secrets are not returned.",
	}, func(ctx context.Context, in *struct{ rest.Page }) (rest.Reply, error) {
		return d.Read(ctx, keys, in.Page, nil)
	})
	rest.Register(d.Server, rest.Operation{
		ID: "get-key", Method: http.MethodGet, Path: "/keys/{key_id}", Summary: "Get an API key", Answer: apiKey{}, Description: "One API key, without its secret.",
	}, func(ctx context.Context, in *KeyPath) (rest.Reply, error) {
		return d.One(ctx, "This workspace has no such key.", rest.Query{Function: keys.Function, Filter: map[string]any{"key_id": in.KeyID}})
	})
	rest.Register(d.Server, rest.Operation{
		ID: "disable-key", Method: http.MethodPost, Path: "/keys/{key_id}/disable", Summary: "Disable an API key", Answer: keyChange{}, Example: reasonExample,
		Description: "The key is refused from the next request on, permanently. It stays in the list.",
	}, func(ctx context.Context, in *keyActInput) (rest.Reply, error) {
		return d.Do(ctx, in.AuditedWrite, rest.Change{Reason: why(in.Body), DryRun: in.DryRun, Subject: in.KeyID}, func(ctx context.Context, a rest.OperatorAction) (rest.Written, error) {
			return d.db.DisableAPIKey(ctx, a, in.KeyID)
		})
	})
}
