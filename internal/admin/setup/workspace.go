package setup

import (
	"context"
	"net/http"
	"time"

	"autopost/internal/admin/door"
)

type workspace struct {
	WorkspaceID string    `json:"workspace_id" example:"acme"`
	Name        string    `json:"name" example:"Acme"`
	Status      string    `json:"status" enum:"active,paused,disabled" example:"active" doc:"paused takes posts in and sends nothing."`
	CreatedAt   time.Time `json:"created_at"`
	UpdatedAt   time.Time `json:"updated_at"`
}

func registerWorkspaces(d *door.Door) {
	listOf[workspace](d, "workspace", "workspace_id", "workspaces", "/workspaces", "The workspace of the key")
	door.Register(d, door.Operation{
		ID: "put-workspace", Method: http.MethodPatch, Path: "/workspaces/{id}", Summary: "Change the workspace of the key", Answer: put{},
		Example:     map[string]any{"name": "Acme", "reason": "a better name"},
		Description: "Changes only what the body names: name, status. paused takes posts in and sends nothing; disabled refuses posts.",
	}, func(ctx context.Context, in *putInput) (door.Reply, error) {
		if in.ID != door.Caller(ctx).WorkspaceID {
			return door.Reply{}, door.NotFound("The key is of another workspace.")
		}
		return patch(ctx, d, in.Act, door.Write{Function: "put_workspace", DryRun: in.DryRun, Args: map[string]any{}}, in.Body)
	})
}

type setting struct {
	Key       string    `json:"key" example:"max_attempts"`
	Value     any       `json:"value"`
	Meaning   string    `json:"meaning"`
	UpdatedAt time.Time `json:"updated_at"`
}

func registerSettings(d *door.Door) {
	listOf[setting](d, "setting", "key", "settings", "/settings", "What the whole installation decides by")
}

type credential struct {
	AuthRef    string    `json:"auth_ref" example:"bot"`
	Platform   string    `json:"platform" example:"telegram"`
	KeptIn     string    `json:"kept_in" enum:"env,file,sealed" example:"sealed" doc:"Where its secret is kept; the secret is shown to nobody."`
	RotatedAt  instant   `json:"rotated_at" nullable:"true"`
	Channels   int       `json:"channels" example:"3" doc:"Channels that use it now."`
	Held       int       `json:"held" doc:"Of these, how many wait because it was refused."`
	AuthLostAt instant   `json:"auth_lost_at" nullable:"true" doc:"When it was last refused."`
	UpdatedAt  time.Time `json:"updated_at"`
}

func registerCredentials(d *door.Door) {
	listOf[credential](d, "credential", "auth_ref", "credentials", "/credentials", "Credentials by name, with their health")
	door.Register(d, door.Operation{
		ID: "requeue-credential", Method: http.MethodPost, Path: "/credentials/{id}/requeue", Summary: "Go on after a credential is good again", Answer: changed{}, Example: reasonExample,
		Description: "Its channels that wait because it was refused go on, and what failed because of it is put back, the oldest 1,000 at a time.",
	}, func(ctx context.Context, in *actInput) (door.Reply, error) {
		return d.Do(ctx, in.Act, door.Write{Function: "requeue_auth_lost", Reason: why(in.Body), DryRun: in.DryRun, Args: map[string]any{"auth_ref": in.ID}})
	})
}
