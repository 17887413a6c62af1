package setup

import (
	"context"
	"net/http"
	"time"

	"autopost/internal/admin/door"
)

type chat struct {
	ChatID     string    `json:"chat_id" example:"telegram/bot/-1001234567890" doc:"platform/auth_ref/target_id."`
	Platform   string    `json:"platform" example:"telegram"`
	AuthRef    string    `json:"auth_ref" example:"bot" doc:"Whose bot it is."`
	TargetID   string    `json:"target_id" example:"-1001234567890" doc:"As a channel has it."`
	Title      string    `json:"title" example:"Demo shop"`
	Username   *string   `json:"username" nullable:"true" example:"demo_shop"`
	Kind       string    `json:"kind" enum:"channel,chat,dialog"`
	MayPost    *bool     `json:"may_post" nullable:"true" doc:"null: nobody has said yet; the platform is asked."`
	Reason     *string   `json:"reason" nullable:"true" doc:"Why it may not, and what to do about it."`
	MigratedTo *string   `json:"migrated_to" nullable:"true" doc:"The supergroup that took its place."`
	FirstSeen  time.Time `json:"first_seen"`
	LastSeen   time.Time `json:"last_seen"`
	LeftAt     instant   `json:"left_at" nullable:"true" doc:"The bot is not in it any more."`
	ChannelIDs []string  `json:"channel_ids" doc:"The channels that post to it by this bot; none: it could become one."`
}

func registerChats(d *door.Door) {
	list := door.List{Function: "list_configuration", Kind: "chat", Key: door.ByName("chat_id")}
	door.Register(d, door.Operation{
		ID: "list-chats", Method: http.MethodGet, Path: "/chats", Summary: "Chats that bots are in", Answer: door.Listed[chat]{},
		Description: "As far as their platforms told, by platform, credential and id: what is a channel, and what could become one.",
	}, func(ctx context.Context, in *struct{ door.Page }) (door.Reply, error) {
		return d.Read(ctx, list, in.Page, nil)
	})
}
