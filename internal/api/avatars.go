package api

import (
	"context"
	"net/http"

	"autopost/internal/api/rest"
)

type avatar struct {
	AvatarID string `json:"avatar_id" example:"657ab0c1" doc:"The avatarId of events."`
	Name     string `json:"name" example:"Nyx" doc:"The value of {avatar_name}, unless the event brings one."`
}

// avatarChange is the documented body of a change of an avatar.
type avatarChange struct {
	Name *string `json:"name,omitempty" maxLength:"100" doc:"The name; null removes it."`
	rest.Reasoned
}

func registerAvatars(d *server) {
	listOf[avatar](d, "avatar", "avatar_id", "avatars", "/avatars", "List the names of avatars")
	rest.Register(d.Server, rest.Operation{
		ID: "put-avatar", Method: http.MethodPatch, Path: "/avatars/{id}", Summary: "Name an avatar, or remove its name", Answer: put{}, Body: avatarChange{},
		Example:     map[string]any{"name": "Nyx", "reason": "new avatar"},
		Description: "Later events of the avatar that bring no name use it.",
	}, func(ctx context.Context, in *putInput) (rest.Reply, error) {
		return d.patch(ctx, in.AuditedWrite, rest.Change{DryRun: in.DryRun, Subject: in.ID}, in.Body, func(ctx context.Context, a rest.OperatorAction, fields any) (rest.Written, error) {
			return d.db.PutAvatar(ctx, a, in.ID, fields)
		})
	})
}
