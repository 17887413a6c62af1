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
}

func registerSettings(d *server) {
	listOf[setting](d, "setting", "key", "settings", "/settings", "List the settings of the installation")
}
