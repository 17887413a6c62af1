package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
)

func chatCommand() *cobra.Command {
	return family("chat", "The chats that bots are in, as their platforms told", chatListCommand())
}

func chatListCommand() *cobra.Command {
	cmd := listing("List the chats that bots are or were in, channels or not", func(ctx context.Context, store *pg.Store, workspace string) ([]string, [][]any, error) {
		list, err := store.ListChats(ctx, workspace, listLimit)
		return chatColumns, chatRows(list), err
	})
	cmd.Long = `List the chats that the bots of a workspace are or were in. Platforms tell of them to
endpoints of bots: see autopost endpoint add --kind telegram and --kind max. A chat
whose bot may post, and that is no channel yet, becomes one by
"autopost channel add ID --chat CHAT".`
	return cmd
}

func channelDiscoverCommand() *cobra.Command {
	cmd := listing("List the chats that could become channels", func(ctx context.Context, store *pg.Store, workspace string) ([]string, [][]any, error) {
		list, err := store.ListChats(ctx, workspace, listLimit)
		fresh := make([]pg.ChatRow, 0, len(list))
		for _, c := range list {
			if len(c.ChannelIDs) == 0 && c.LeftAt == nil && c.MigratedTo == nil {
				fresh = append(fresh, c)
			}
		}
		return chatColumns, chatRows(fresh), err
	})
	cmd.Use = "discover"
	cmd.Long = `List the chats that a bot is in and that are no channels yet. Add one by
"autopost channel add ID --chat CHAT". autopost chat list shows all that are known.`
	return cmd
}

var chatColumns = []string{"platform", "auth_ref", "target_id", "title", "kind", "may_post", "reason", "channel_ids", "left_at", "last_seen"}

func chatRows(list []pg.ChatRow) [][]any {
	rows := make([][]any, 0, len(list))
	for _, c := range list {
		var mayPost any // nobody has said
		if c.MayPost != nil {
			mayPost = *c.MayPost
		}
		left := ""
		if c.LeftAt != nil {
			left = c.LeftAt.UTC().Format(time.RFC3339)
		}
		rows = append(rows, []any{c.Platform, c.AuthRef, c.TargetID, c.Title, c.Kind, mayPost, textOr(c.Reason), c.ChannelIDs, left, c.LastSeen.UTC().Format(time.RFC3339)})
	}
	return rows
}

// fillFromChat says of a new channel what is known of a chat, and the person did not say.
func fillFromChat(ctx context.Context, store *pg.Store, workspace, chat string, fields pg.Fields) error {
	list, err := store.ListChats(ctx, workspace, listLimit)
	if err != nil {
		return err
	}
	var found []pg.ChatRow
	for _, c := range list {
		named := c.TargetID == chat || c.Username != nil && strings.EqualFold("@"+*c.Username, chat)
		if named && agrees(fields, "platform", c.Platform) && agrees(fields, "auth_ref", c.AuthRef) {
			found = append(found, c)
		}
	}
	switch {
	case len(found) == 0:
		return fmt.Errorf("no bot was found in a chat %s: see autopost chat list", chat)
	case len(found) > 1:
		return fmt.Errorf("several bots are in the chat %s: name one by --auth-ref, as autopost chat list shows them", chat)
	}
	c := found[0]
	if c.MayPost != nil && !*c.MayPost {
		fmt.Fprintf(os.Stderr, "autopost: nothing can be posted there yet: %s\n", textOr(c.Reason))
	}
	for field, value := range map[string]string{"platform": c.Platform, "target_id": c.TargetID, "auth_ref": c.AuthRef, "title": c.Title} {
		if _, given := fields[field]; !given && value != "" {
			raw, err := json.Marshal(value)
			if err != nil {
				return fmt.Errorf("encode %s: %w", field, err)
			}
			fields[field] = raw
		}
	}
	return nil
}

// agrees reports whether a field is not given, or is this.
func agrees(fields pg.Fields, name, value string) bool {
	given, ok := fields[name]
	return !ok || shown(given) == value
}
