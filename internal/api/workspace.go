package api

import (
	"context"
	"net/http"
	"time"

	"autopost/internal/api/rest"
)

type workspace struct {
	WorkspaceID string    `json:"workspace_id" example:"acme"`
	Name        string    `json:"name" example:"Acme"`
	Status      string    `json:"status" enum:"active,paused,disabled" example:"active" doc:"A paused workspace accepts posts and sends none."`
	CreatedAt   time.Time `json:"created_at"`
	UpdatedAt   time.Time `json:"updated_at"`
}

func registerWorkspaces(d *server) {
	listOf[workspace](d, "workspace", "workspace_id", "workspaces", "/workspaces", "List the workspace of the key")
	rest.Register(d.Server, rest.Operation{
		ID: "put-workspace", Method: http.MethodPatch, Path: "/workspaces/{id}", Summary: "Change the workspace of the key", Answer: put{},
		Change:      changeOf("workspace"),
		Example:     map[string]any{"name": "Acme", "reason": "a better name"},
		Description: "Changes only the given fields: name, status. A paused workspace accepts posts and sends none. A disabled one refuses posts.",
	}, func(ctx context.Context, in *putInput) (rest.Reply, error) {
		if in.ID != rest.Caller(ctx).WorkspaceID {
			return rest.Reply{}, rest.NotFound("The key belongs to another workspace.")
		}
		return d.patch(ctx, in.AuditedWrite, rest.Change{DryRun: in.DryRun}, in.Body, func(ctx context.Context, a rest.OperatorAction, fields any) (rest.Written, error) {
			return d.db.PutWorkspace(ctx, a, fields)
		})
	})
}

type setting struct {
	Key       string  `json:"key" example:"max_attempts"`
	Value     any     `json:"value"`
	Meaning   string  `json:"meaning"`
	UpdatedAt instant `json:"updated_at" nullable:"true" doc:"null for an upload policy, which is kept with its platform."`
	Default   any     `json:"default_value" doc:"The value without a change; null if there is none."`
	Least     *int64  `json:"least" nullable:"true" doc:"The lowest allowed number; null if there is none."`
	Most      *int64  `json:"most" nullable:"true" doc:"The highest allowed number; null if there is none."`
	Internal  bool    `json:"internal" doc:"For tests and support. Operators need not change it."`
}

type settingInput struct {
	rest.AuditedWrite
	rest.Dry
	ID   string `path:"id" maxLength:"200"`
	Body struct {
		rest.Reasoned
		Value any `json:"value" doc:"The new value, as JSON; null restores the default."`
	}
}

// settingsChanged is the answer to a changed setting.
type settingsChanged struct {
	Applied bool            `json:"applied" doc:"false with the reason unchanged if there was nothing to change."`
	DryRun  bool            `json:"dry_run"`
	Reason  string          `json:"reason,omitempty" example:"unchanged"`
	Changes []settingChange `json:"changes,omitempty" nullable:"false" doc:"The changed setting."`
}

type settingChange struct {
	Key    string `json:"key" example:"max_attempts"`
	Before any    `json:"before" doc:"The value before the change."`
	After  any    `json:"after" doc:"The value after the change."`
}

func registerSettings(d *server) {
	listOf[setting](d, "setting", "key", "settings", "/settings", "List the settings of the installation")
	rest.Register(d.Server, rest.Operation{
		ID: "put-setting", Method: http.MethodPatch, Path: "/settings/{id}", Summary: "Change a setting of the installation", Answer: settingsChanged{},
		Example: map[string]any{"value": 7, "reason": "a slow platform"},
		Description: "Only a person who owns the installation may do it; an API key belongs to one workspace. The audit log of the workspace that is named by the setting " +
			"operator_workspace has the change. A daemon overwrites the settings that its environment sets at its next start.",
	}, func(ctx context.Context, in *settingInput) (rest.Reply, error) {
		if _, err := d.One(ctx, "There is no such setting.", rest.Query{Function: "list_configuration", Kind: "setting", Filter: map[string]any{"id": in.ID}}); err != nil {
			return rest.Reply{}, err
		}
		return d.Do(ctx, in.AuditedWrite, rest.Change{Reason: in.Body.Reason, DryRun: in.DryRun, Subject: in.ID}, func(ctx context.Context, a rest.OperatorAction) (rest.Written, error) {
			return d.db.ApplySettings(ctx, a, map[string]any{in.ID: in.Body.Value})
		})
	})
}
