package cli

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"autopost/internal/config"
	"autopost/internal/pg"
	"autopost/internal/table"
)

func moderationChatCommand() *cobra.Command {
	return parentCommand("chat", "Manage the chats whose members decide about posts", append(
		switchCommands("moderation_chat", "mods", (*pg.Store).PutModerationChat, "Ask a chat about posts", "Ask a chat no longer; it loses its buttons"),
		moderationChatListCommand(),
		moderationChatPutCommand("add", "Add a chat whose members decide",
			`  autopost moderation chat add mods --auth-ref news-bot --target-id=-1001234567890 --reason "the editors"`, mustNotExist),
		moderationChatPutCommand("set", "Change a chat whose members decide", `  autopost moderation chat set mods --users 5001,5002 --reason "only these"`, mustExist),
		moderationChatRemoveCommand())...)
}

func moderationChatListCommand() *cobra.Command {
	return listing("List the chats whose members decide", "  autopost moderation chat list", func(ctx context.Context, store *pg.Store, workspace string) ([]pg.ModerationChatRow, table.Table, error) {
		list, err := store.ListModerationChats(ctx, workspace, listLimit)
		rows := make([][]any, 0, len(list))
		for _, c := range list {
			users := "any member"
			if len(c.Users) > 0 {
				users = strings.Join(c.Users, ", ")
			}
			rows = append(rows, []any{c.ChatID, c.Platform, c.TargetID, c.AuthRef, c.Enabled, users, c.Waiting, instantOr(c.SentAt, "never"), c.Failures, c.Fault})
		}
		return list, table.Table{
			Columns: []string{"chat_id", "platform", "target_id", "auth_ref", "enabled", "users", "waiting", "sent", "failures", "fault"},
			Details: []string{"auth_ref", "failures"}, Optional: []string{"fault"}, Rows: rows,
			Empty: "No chat decides: run autopost moderation chat add.",
		}, err
	})
}

func moderationChatPutCommand(verb, short, example string, expected expectation) *cobra.Command {
	p := newUpsert("moderation_chat")
	cmd := &cobra.Command{
		Use:     verb + " ID",
		Short:   short,
		Example: example,
		Args:    oneArgument("chat id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := p.write(cmd, "moderation chat "+args[0], expected, func(ctx context.Context, store *pg.Store, act pg.OperatorAction, fields pg.Fields) (pg.PutAnswer, error) {
				return pg.Decode[pg.PutAnswer](store.PutModerationChat(ctx, act, args[0], fields))
			}); err != nil {
				return err
			}
			return advisePresses()
		},
	}
	workspaceFlag(cmd, &p.act.Workspace)
	p.flags(cmd)
	return cmd
}

func moderationChatRemoveCommand() *cobra.Command {
	var m operatorFlags
	cmd := &cobra.Command{
		Use:   "remove ID",
		Short: "Remove a chat whose members decide",
		Long: `Remove a chat whose members decide. Its messages keep their buttons, and a press is
refused. To remove the buttons first, run autopost moderation chat disable.`,
		Example: `  autopost moderation chat remove mods --reason "team changed"`,
		Args:    oneArgument("chat id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.with(cmd, func(ctx context.Context, store *pg.Store) error {
				answer, err := pg.Decode[pg.PutAnswer](store.RemoveModerationChat(ctx, m.act, args[0]))
				if err != nil {
					return err
				}
				return m.printPut("moderation chat "+args[0], answer)
			})
		},
	}
	m.flags(cmd)
	m.requireReason(cmd)
	return cmd
}

// noPublicURL says why no press can arrive.
const noPublicURL = "AUTOPOST_PUBLIC_URL is not set: platforms cannot report presses to the daemon"

// advisePresses prints that no press can arrive without a public address.
func advisePresses() error {
	cfg, err := config.Load(os.Environ())
	if err != nil {
		return err
	}
	if cfg.PublicURL == "" {
		fmt.Fprintln(os.Stderr, "autopost: "+noPublicURL+". Set it, or decide with autopost moderation approve and reject")
	}
	return nil
}

// diagnoseModeration checks that each enabled chat can be asked, and that its presses can arrive.
func diagnoseModeration(ctx context.Context, publicURL string, store *pg.Store) ([]pg.Check, error) {
	workspaces, err := store.ListAllWorkspaces(ctx)
	if err != nil {
		return nil, err
	}
	var checks []pg.Check
	for _, workspace := range workspaces {
		chats, err := store.ListModerationChats(ctx, workspace, listLimit)
		if err != nil {
			return nil, err
		}
		for _, c := range chats {
			if c.Enabled {
				checks = append(checks, diagnoseModerationChat(workspace, publicURL, c))
			}
		}
	}
	return checks, nil
}

func diagnoseModerationChat(workspace, publicURL string, c pg.ModerationChatRow) pg.Check {
	check := pg.Check{Name: "moderation chat " + workspace + "/" + c.ChatID, OK: true, Found: "asked, and its presses arrive"}
	switch {
	case c.Fault != "":
		check.OK, check.Found = false, c.Fault
		check.Remedy = fmt.Sprintf("correct it: autopost moderation chat set %s --workspace %s, autopost credential check %s --workspace %s", c.ChatID, workspace, c.AuthRef, workspace)
	case publicURL == "":
		check.OK, check.Found = false, noPublicURL
		check.Remedy = fmt.Sprintf("set AUTOPOST_PUBLIC_URL for the daemon; meanwhile decide with autopost moderation list --workspace %s", workspace)
	}
	return check
}
