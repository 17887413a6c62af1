package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
	"autopost/internal/table"
)

func chatCommand() *cobra.Command {
	return parentCommand("chat", "List the chats of bots", chatListCommand())
}

func chatListCommand() *cobra.Command {
	cmd := listing("List the current and former chats of the bots", "  autopost chat list --workspace news",
		func(ctx context.Context, store *pg.Store, workspace string) ([]pg.ChatRow, table.Table, error) {
			list, err := store.ListChats(ctx, workspace, listLimit)
			return list, chatTable(list), err
		})
	cmd.Long = `List the chats that the bots of a workspace are in, or were in. Platforms report them to
bot endpoints: see autopost endpoint add --kind telegram and --kind max. To post to a
chat, run autopost channel add ID --chat CHAT.`
	return cmd
}

func channelDiscoverCommand() *cobra.Command {
	cmd := listing("List the chats that can become channels", "  autopost channel discover --workspace news",
		func(ctx context.Context, store *pg.Store, workspace string) ([]pg.ChatRow, table.Table, error) {
			list, err := store.ListChats(ctx, workspace, listLimit)
			found := make([]pg.ChatRow, 0, len(list))
			for _, c := range list {
				if len(c.ChannelIDs) == 0 && c.LeftAt == nil && c.MigratedTo == nil {
					found = append(found, c)
				}
			}
			return found, chatTable(found), err
		})
	cmd.Use = "discover"
	cmd.Long = `List the chats that a bot is in and that are not channels yet. To add one, run
autopost channel add ID --chat CHAT. autopost chat list prints all known chats.`
	return cmd
}

func chatTable(list []pg.ChatRow) table.Table {
	rows := make([][]any, 0, len(list))
	for _, c := range list {
		rows = append(rows, []any{c.Platform, c.TargetID, c.Title, c.Kind, c.MayPost, c.Reason, c.ChannelIDs, c.AuthRef, c.LeftAt, c.LastSeen})
	}
	return table.Table{
		Columns: []string{"platform", "target_id", "title", "kind", "may_post", "why_not", "channels", "credential", "left", "last_seen"},
		Details: []string{"channels", "credential", "left", "last_seen"}, Optional: []string{"why_not"}, Rows: rows,
		Empty: "No chat: add the bot to a chat, and run autopost endpoint add ID --kind telegram --auth-ref NAME so that its platform reports it.",
	}
}

// fillFromChat sets the fields of a new channel from a known chat. Given fields win.
func fillFromChat(ctx context.Context, store *pg.Store, workspace, chat string, fields pg.Fields) error {
	list, err := store.ListChats(ctx, workspace, listLimit)
	if err != nil {
		return err
	}
	var found []pg.ChatRow
	for _, c := range list {
		named := c.TargetID == chat || c.Username != nil && strings.EqualFold("@"+*c.Username, chat)
		if named && notOther(fields, "platform", c.Platform) && notOther(fields, "auth_ref", c.AuthRef) {
			found = append(found, c)
		}
	}
	switch {
	case len(found) == 0:
		return unknown("chat "+chat, "autopost chat list")
	case len(found) > 1:
		return fmt.Errorf("--auth-ref must be set, because several bots are in chat %s: run autopost chat list", chat)
	}
	c := found[0]
	if c.MayPost != nil && !*c.MayPost {
		fmt.Fprintf(os.Stderr, "autopost: the bot cannot post to this chat yet: %s\n", textOr(c.Reason))
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

// notOther reports whether a field is absent or has this value.
func notOther(fields pg.Fields, name, value string) bool {
	given, ok := fields[name]
	return !ok || valueText(given) == value
}
