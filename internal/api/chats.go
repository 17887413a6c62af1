package api

import (
	"context"
	"net/http"
	"time"

	"autopost/internal/api/rest"
)

type chat struct {
	ChatID     string    `json:"chat_id" example:"telegram/bot/-1001234567890" doc:"platform/auth_ref/target_id."`
	Platform   string    `json:"platform" example:"telegram"`
	AuthRef    string    `json:"auth_ref" example:"bot" doc:"The credential of the bot."`
	TargetID   string    `json:"target_id" example:"-1001234567890" doc:"The target_id for a channel."`
	Title      string    `json:"title" example:"Demo shop"`
	Username   *string   `json:"username" nullable:"true" example:"demo_shop"`
	Kind       string    `json:"kind" enum:"channel,chat,dialog"`
	MayPost    *bool     `json:"may_post" nullable:"true" doc:"null if unknown; the platform is asked."`
	Reason     *string   `json:"reason" nullable:"true" doc:"Why the bot may not post, and the remedy."`
	MigratedTo *string   `json:"migrated_to" nullable:"true" doc:"The supergroup that replaced it."`
	FirstSeen  time.Time `json:"first_seen"`
	LastSeen   time.Time `json:"last_seen"`
	LeftAt     instant   `json:"left_at" nullable:"true" doc:"When the bot left the chat."`
	ChannelIDs []string  `json:"channel_ids" doc:"The channels that post to it with this bot."`
}

func registerChats(d *server) {
	list := rest.List{Function: "list_configuration", Kind: "chat", Key: rest.ByName("chat_id")}
	rest.Register(d.Server, rest.Operation{
		ID: "list-chats", Method: http.MethodGet, Path: "/chats", Summary: "List the chats of the bots", Answer: rest.Listed[chat]{},
		Description: "The chats that the platforms reported, by platform, credential and id. A chat without a channel can become one.",
	}, func(ctx context.Context, in *struct{ rest.Page }) (rest.Reply, error) {
		return d.Read(ctx, list, in.Page, nil)
	})
}
