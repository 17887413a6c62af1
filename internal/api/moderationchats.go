package api

import (
	"context"
	"net/http"
	"time"

	"autopost/internal/api/rest"
)

type moderationChat struct {
	ChatID    string         `json:"chat_id" example:"mods" doc:"The name of this row."`
	Platform  *string        `json:"platform" enum:"telegram,max" nullable:"true" example:"telegram"`
	AuthRef   string         `json:"auth_ref" example:"bot"`
	TargetID  string         `json:"target_id" example:"-1001234567890"`
	Users     []string       `json:"users" nullable:"false" doc:"The ids of the people who may decide. Empty: any member."`
	Enabled   bool           `json:"enabled"`
	Waiting   int            `json:"waiting" doc:"How many messages wait for a press."`
	SentAt    instant        `json:"sent_at" nullable:"true" doc:"The time of the last message."`
	Failures  int            `json:"failures" doc:"Failures in a row."`
	LastError map[string]any `json:"last_error" nullable:"true"`
	Fault     *string        `json:"fault" nullable:"true" doc:"Why nobody can be asked or decide there; null if the database knows no reason."`
	CreatedAt time.Time      `json:"created_at"`
	UpdatedAt time.Time      `json:"updated_at"`
}

func registerModerationChats(d *server) {
	removeOf(d, "moderation-chat", "/moderation-chats", "Remove a moderators' chat", "Its messages stay in the chat. Their buttons no longer decide.", Store.RemoveModerationChat)
	listOf[moderationChat](d, "moderation-chat", "chat_id", "moderation-chats", "/moderation-chats", "List the chats whose members decide")
	rest.Register(d.Server, rest.Operation{
		ID: "put-moderation-chat", Method: http.MethodPatch, Path: "/moderation-chats/{id}", Summary: "Create or change a moderators' chat", Answer: put{},
		Change:      changeOf("moderation_chat"),
		Example:     map[string]any{"users": []string{"5001"}, "reason": "only Olga decides"},
		Description: "Changes only the given fields. Creates the chat if it does not exist. A disabled chat loses its buttons.",
	}, func(ctx context.Context, in *putInput) (rest.Reply, error) {
		return d.patch(ctx, in.AuditedWrite, rest.Change{DryRun: in.DryRun, Subject: in.ID}, in.Body, func(ctx context.Context, a rest.OperatorAction, fields any) (rest.Written, error) {
			return d.db.PutModerationChat(ctx, a, in.ID, fields)
		})
	})
}
