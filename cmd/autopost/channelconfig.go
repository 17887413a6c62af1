package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"autopost/internal/blueprint"
	"autopost/internal/pg"
)

func channelPutCommand(use, short string, expected standing) *cobra.Command {
	p := newPutting("channel")
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  oneArgument("id of a channel"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.write(cmd, "channel "+args[0], expected, func(ctx context.Context, store *pg.Store, act pg.Act, fields pg.Fields) (pg.PutAnswer, error) {
				return store.PutChannel(ctx, act, args[0], fields)
			})
		},
	}
	workspaceFlag(cmd, &p.act.Workspace)
	p.flags(cmd)
	if expected == absent {
		chat := cmd.Flags().String("chat", "", "chat that a bot was found in, its id or @name: autopost channel discover lists them")
		p.fill = func(ctx context.Context, store *pg.Store, fields pg.Fields) error {
			if *chat == "" {
				return nil
			}
			return fillFromChat(ctx, store, p.act.Workspace, *chat, fields)
		}
	}
	return cmd
}

func channelListCommand() *cobra.Command {
	return listing("List the channels", func(ctx context.Context, store *pg.Store, workspace string) ([]string, [][]any, error) {
		list, err := store.ListChannels(ctx, workspace, listLimit)
		rows := make([][]any, 0, len(list))
		for _, c := range list {
			state := "enabled"
			switch {
			case !c.Enabled:
				state = "disabled"
			case c.Paused:
				state = "paused"
			}
			title := ""
			if c.Title != nil {
				title = *c.Title
			}
			rows = append(rows, []any{c.ChannelID, c.Platform, c.TargetID, state, c.AuthRef, c.RateGroup, c.RateRPS, title, heldBy(c)})
		}
		return []string{"channel_id", "platform", "target_id", "state", "auth_ref", "rate_group", "rate_rps", "title", "held_by"}, rows, err
	})
}

// heldBy says why a channel sends nothing, and until when, empty where nothing of its own is in the way.
func heldBy(c pg.ChannelRow) string {
	var held []string
	if c.Paused && c.AuthHeld {
		held = append(held, "credential "+c.AuthRef+" is refused")
	} else if c.ErrorStreak > 0 && (c.Paused || !c.Enabled) {
		held = append(held, fmt.Sprintf("refused %d times in a row", c.ErrorStreak))
	}
	if c.Paused && c.PausedUntil != nil {
		held = append(held, "until "+c.PausedUntil.UTC().Format(time.RFC3339))
	}
	return strings.Join(held, ", ")
}

func channelShowCommand() *cobra.Command {
	var workspace string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show how a channel is configured and what it is doing",
		Args:  oneArgument("id of a channel"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withWorkspace(cmd.Context(), workspace, func(ctx context.Context, store *pg.Store, workspace string) error {
				raw, err := store.GetChannel(ctx, workspace, args[0])
				if err != nil {
					return err
				}
				if raw == nil {
					return fmt.Errorf("there is no channel %s in workspace %s", args[0], workspace)
				}
				if asJSON {
					fmt.Fprintln(os.Stdout, string(raw))
					return nil
				}
				return showObject(raw, "fields", "state")
			})
		},
	}
	workspaceFlag(cmd, &workspace)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func channelRemoveCommand() *cobra.Command {
	var m manual
	cmd := &cobra.Command{
		Use:   "remove ID",
		Short: "Take away a disabled channel that nothing refers to",
		Long: `Take away a channel that is disabled and never had a delivery. Any other stays:
disable it, which is the ordinary way to be rid of one.`,
		Args: oneArgument("id of a channel"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.with(cmd, func(ctx context.Context, store *pg.Store) error {
				answer, err := store.RemoveChannel(ctx, m.act, args[0])
				if err != nil {
					return err
				}
				return m.tellPut("channel "+args[0], answer)
			})
		},
	}
	m.flags(cmd)
	return cmd
}

func channelImportCommand() *cobra.Command {
	a := applying{}
	cmd := &cobra.Command{
		Use:   "import FILE.csv",
		Short: "Add and change channels from a table",
		Long: `Add and change channels from comma-separated values, all of them or none. The first
row names the columns: channel_id and any of
` + wrapped(blueprint.KindOf("channel").Names()) + `
An empty cell says nothing. Lists stand in a cell with commas between; posting_window,
settings and route_filter as JSON. What would change is shown first.`,
		Args: oneArgument("file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := os.Open(args[0])
			if err != nil {
				return misuse{err}
			}
			defer func() { _ = file.Close() }() // it was only read
			items, err := blueprint.ReadTable(args[0], file)
			if err != nil {
				return misuse{err}
			}
			return a.with(cmd, func(ctx context.Context, store *pg.Store) error {
				plan := &plan{}
				if err := plan.add(ctx, store, a.act, items); err != nil {
					return err
				}
				return a.carryOut(ctx, store, plan)
			})
		},
	}
	workspaceFlag(cmd, &a.act.Workspace)
	a.flags(cmd)
	return cmd
}

// wrapped is a list of names in lines that fit a terminal.
func wrapped(names []string) string {
	var lines strings.Builder
	width := 0
	for i, name := range names {
		if i > 0 {
			lines.WriteString(",")
			width++
		}
		switch {
		case width+len(name) > 80:
			lines.WriteString("\n")
			width = 0
		case i > 0:
			lines.WriteString(" ")
			width++
		}
		lines.WriteString(name)
		width += len(name)
	}
	return lines.String() + "."
}
