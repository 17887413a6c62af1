package setup

import (
	"context"
	"net/http"
	"time"

	"autopost/internal/admin/door"
)

type apiKey struct {
	KeyID      string    `json:"key_id" format:"uuid"`
	Name       string    `json:"name" example:"ci"`
	Role       string    `json:"role" enum:"viewer,editor,approver,operator,owner" example:"editor"`
	Scopes     []string  `json:"scopes" nullable:"false" example:"[\"posts:write\"]" doc:"What it is narrowed to; none: all that the role may do."`
	Enabled    bool      `json:"enabled"`
	ExpiresAt  instant   `json:"expires_at" nullable:"true"`
	LastUsedAt instant   `json:"last_used_at" nullable:"true" doc:"To the hour."`
	ReplacedBy *string   `json:"replaced_by" format:"uuid" nullable:"true" doc:"The key that took its place."`
	CreatedAt  time.Time `json:"created_at"`
}

// KeyPath names a key.
type KeyPath struct {
	KeyID string `path:"key_id" format:"uuid"`
}

type keyActInput struct {
	door.Act
	door.Dry
	KeyPath
	Body *door.Reasoned
}

type keyChange struct {
	Applied bool           `json:"applied"`
	DryRun  bool           `json:"dry_run"`
	Reason  string         `json:"reason,omitempty" example:"unchanged"`
	Before  map[string]any `json:"before,omitempty"`
	After   map[string]any `json:"after,omitempty"`
}

var keys = door.List{Function: "list_api_keys", Key: door.ByID("key_id")}

func registerKeys(d *door.Door) {
	door.Register(d, door.Operation{
		ID: "list-keys", Method: http.MethodGet, Path: "/keys", Summary: "Keys of the API, the newest first", Answer: door.Listed[apiKey]{},
		Description: "Ended ones too. Keys are made and replaced at the command line (autopost apikey), so that no secret crosses the network.",
	}, func(ctx context.Context, in *struct{ door.Page }) (door.Reply, error) {
		return d.Read(ctx, keys, in.Page, nil)
	})
	door.Register(d, door.Operation{
		ID: "get-key", Method: http.MethodGet, Path: "/keys/{key_id}", Summary: "One key of the API", Answer: apiKey{}, Description: "Never its secret.",
	}, func(ctx context.Context, in *KeyPath) (door.Reply, error) {
		return d.One(ctx, keys.Function, "", "This workspace has no such key.", map[string]any{"key_id": in.KeyID})
	})
	door.Register(d, door.Operation{
		ID: "disable-key", Method: http.MethodPost, Path: "/keys/{key_id}/disable", Summary: "End a key for good", Answer: keyChange{}, Example: reasonExample,
		Description: "It is refused from the next request on, and stays listed.",
	}, func(ctx context.Context, in *keyActInput) (door.Reply, error) {
		return d.Do(ctx, in.Act, door.Write{Function: "disable_api_key", Reason: why(in.Body), DryRun: in.DryRun, Args: map[string]any{"key_id": in.KeyID}})
	})
}

type auditRow struct {
	ID       string    `json:"id" format:"uuid"`
	Seq      int64     `json:"seq" example:"17" doc:"Its place in the chain of the workspace."`
	TS       time.Time `json:"ts"`
	Operator string    `json:"operator" example:"ci (api key 0199c6a0-0000-7000-8000-000000000000)"`
	Action   string    `json:"action" example:"pause_channel"`
	Reason   string    `json:"reason" example:"ticket 4711"`
	Subject  string    `json:"subject" example:"channel:news-ru"`
	Before   any       `json:"before" doc:"What changed, as it was."`
	After    any       `json:"after"`
	Hash     string    `json:"hash" doc:"Seals this row and all before it."`
}

type auditInput struct {
	door.Page
	Since    string `query:"since" format:"date-time" doc:"From this instant on, with its offset." example:"2026-12-01T10:00:00Z"`
	Until    string `query:"until" format:"date-time" doc:"Before this instant." example:"2026-12-02T10:00:00Z"`
	Action   string `query:"action" doc:"The function that acted." example:"pause_channel"`
	Subject  string `query:"subject" doc:"What it was about." example:"channel:news-ru"`
	Operator string `query:"operator" doc:"Who acted."`
}

var audit = door.List{Function: "list_audit", Key: door.ByID("id")}

func registerAudit(d *door.Door) {
	door.Register(d, door.Operation{
		ID: "list-audit", Method: http.MethodGet, Path: "/audit", Summary: "Who changed what, the newest first", Answer: door.Listed[auditRow]{},
		Description: "What people and programs did by hand, with before and after.",
	}, func(ctx context.Context, in *auditInput) (door.Reply, error) {
		return d.Read(ctx, audit, in.Page, map[string]any{"action": in.Action, "subject": in.Subject, "operator": in.Operator, "since": in.Since, "until": in.Until})
	})
}
