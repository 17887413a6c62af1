package cli

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"autopost/internal/configfile"
	"autopost/internal/pg"
	"autopost/internal/table"
)

func channelCommand() *cobra.Command {
	return parentCommand("channel", "Manage channels", append(
		switchCommands("channel", "city", (*pg.Store).PutChannel, "Enable a channel; resume also ends its pause", "Disable a channel; its queue stays"),
		channelPutCommand("add", "Add a channel", `  autopost channel add city --platform telegram --target-id @city_news --auth-ref news-bot --reason "new channel"
  autopost channel add city --chat @city_news --reason "new channel"`, mustNotExist),
		channelPutCommand("set", "Change a channel", `  autopost channel set city --rate-rps 0.5 --reason "slow down"`, mustExist),
		channelDiscoverCommand(), channelListCommand(), channelShowCommand(), channelRemoveCommand(), channelImportCommand(),
		channelPauseCommand(), channelResumeCommand(), channelCheckCommand())...)
}

func channelPutCommand(verb, short, example string, expected expectation) *cobra.Command {
	p := newUpsert("channel")
	cmd := &cobra.Command{
		Use:     verb + " ID",
		Short:   short,
		Example: example,
		Args:    oneArgument("channel id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.write(cmd, "channel "+args[0], expected, func(ctx context.Context, store *pg.Store, act pg.OperatorAction, fields pg.Fields) (pg.PutAnswer, error) {
				return pg.Decode[pg.PutAnswer](store.PutChannel(ctx, act, args[0], fields))
			})
		},
	}
	workspaceFlag(cmd, &p.act.Workspace)
	p.flags(cmd)
	if expected == mustNotExist {
		chat := cmd.Flags().String("chat", "", "chat id or @name of a discovered chat; fills platform, target and credential (see channel discover)")
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
	return listing("List the channels of a workspace", "  autopost channel list --workspace news",
		func(ctx context.Context, store *pg.Store, workspace string) ([]pg.ChannelRow, table.Table, error) {
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
				rows = append(rows, []any{c.ChannelID, c.Platform, c.TargetID, state, heldBy(c), c.Title, c.AuthRef, c.RateGroup, c.RateRPS})
			}
			return list, table.Table{
				Columns: []string{"channel_id", "platform", "target_id", "state", "why", "title", "credential", "rate_group", "rate_rps"},
				Details: []string{"title", "credential", "rate_group", "rate_rps"}, Optional: []string{"why"}, Rows: rows,
				Empty: "No channel: run autopost channel add ID --platform telegram --target-id @NAME --auth-ref NAME.",
			}, err
		})
}

// heldBy explains why a channel sends nothing, and until when. It is empty if the channel
// itself is not the reason.
func heldBy(c pg.ChannelRow) string {
	var reasons []string
	if c.Paused && c.AuthHeld {
		reasons = append(reasons, "credential "+c.AuthRef+" is refused")
	} else if c.ErrorStreak > 0 && (c.Paused || !c.Enabled) {
		reasons = append(reasons, "refused "+counted(c.ErrorStreak, "time")+" in a row")
	}
	if c.CredentialMissing {
		reasons = append(reasons, "credential "+c.AuthRef+" is missing")
	}
	if c.Paused && c.PausedUntil != nil {
		reasons = append(reasons, "until "+table.Time(*c.PausedUntil))
	}
	if c.EffectiveRPS > 0 && c.EffectiveRPS != c.RateRPS {
		reasons = append(reasons, fmt.Sprintf("limited by the platform to %.3g posts a second", c.EffectiveRPS))
	}
	return strings.Join(reasons, ", ")
}

func channelShowCommand() *cobra.Command {
	var f readFlags
	cmd := &cobra.Command{
		Use:     "show ID",
		Short:   "Show the configuration and state of a channel",
		Example: "  autopost channel show city",
		Args:    oneArgument("channel id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, func(ctx context.Context, store *pg.Store, workspace string) error {
				raw, err := store.GetChannel(ctx, workspace, args[0])
				if err != nil {
					return err
				}
				if raw == nil {
					return unknownChannel(workspace, args[0])
				}
				return f.printObject(raw, "fields", "state")
			})
		},
	}
	f.addOne(cmd)
	return cmd
}

func unknownChannel(workspace, id string) error {
	return unknown("channel "+id+" in workspace "+workspace, "autopost channel list")
}

func channelRemoveCommand() *cobra.Command {
	var m operatorFlags
	cmd := &cobra.Command{
		Use:   "remove ID",
		Short: "Remove a disabled channel without deliveries",
		Long: `Remove a channel that is disabled and never had a delivery. A channel with deliveries
cannot be removed. Disable it instead.`,
		Example: `  autopost channel remove city --reason "added by mistake"`,
		Args:    oneArgument("channel id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.put(cmd, "channel "+args[0], func(ctx context.Context, store *pg.Store) (pg.PutAnswer, error) {
				return pg.Decode[pg.PutAnswer](store.RemoveChannel(ctx, m.act, args[0]))
			})
		},
	}
	m.flags(cmd)
	m.requireReason(cmd)
	return cmd
}

func channelImportCommand() *cobra.Command {
	a := applyFlags{}
	cmd := &cobra.Command{
		Use:   "import FILE.csv",
		Short: "Add and change channels from a CSV file",
		Long: `Add and change channels from a file with comma-separated values: all of them, or none
if one is wrong. The first row names the columns: channel_id and any of
` + wrapNames(configfile.KindOf("channel").Names()) + `
An empty cell leaves the field as it is. Write a list with commas inside its cell, and
posting_window, settings and route_filter as JSON. The command prints the changes and
asks before it applies them.`,
		Example: `  autopost channel import channels.csv --reason "new regions"`,
		Args:    oneArgument("file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := os.Open(args[0])
			if err != nil {
				return usageError{err}
			}
			defer func() { _ = file.Close() }() // it was only read
			items, err := configfile.ReadTable(args[0], file)
			if err != nil {
				return usageError{err}
			}
			return a.with(cmd, func(ctx context.Context, store *pg.Store) error {
				plan := &plan{}
				if err := plan.add(ctx, store, a.act, items); err != nil {
					return err
				}
				return a.apply(ctx, store, plan)
			})
		},
	}
	workspaceFlag(cmd, &a.act.Workspace)
	a.flags(cmd)
	return cmd
}

// wrapNames joins names with commas, in lines of at most 80 characters.
func wrapNames(names []string) string {
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

// checkPause checks the duration of a pause.
func checkPause(pause time.Duration) error {
	if pause < time.Second {
		return usageError{fmt.Errorf("--for must be at least 1s, got %s: write it like --for 1h", pause)}
	}
	return nil
}

func channelPauseCommand() *cobra.Command {
	var m operatorFlags
	var pause time.Duration
	cmd := &cobra.Command{
		Use:   "pause ID",
		Short: "Pause a channel for a duration",
		Long: `Pause a channel for a duration. The new pause replaces an earlier one. Deliveries wait
in the queue and are sent when the pause ends. Calls that are running are not stopped.`,
		Example: `  autopost channel pause city --for 1h --reason "platform maintenance"`,
		Args:    oneArgument("channel id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkPause(pause); err != nil {
				return err
			}
			m.subject = "channel " + args[0]
			return m.run(cmd, func(ctx context.Context, store *pg.Store, act pg.OperatorAction) (pg.ActAnswer, error) {
				return pg.Decode[pg.ActAnswer](store.PauseChannel(ctx, act, args[0], pause))
			})
		},
	}
	durationFlag(cmd, &pause, "for", 0, "duration of the pause, like 90s, 2h or 2d (required)")
	m.flags(cmd)
	return cmd
}

func channelResumeCommand() *cobra.Command {
	var m operatorFlags
	cmd := &cobra.Command{
		Use:   "resume ID",
		Short: "Enable a channel and end its pause",
		Long: `Enable a channel, end its pause and reset its count of failures. Waiting deliveries are
sent at once. A wait that the platform has requested stays.`,
		Example: `  autopost channel resume city --reason "bot is admin again"`,
		Args:    oneArgument("channel id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			m.subject = "channel " + args[0]
			return m.run(cmd, func(ctx context.Context, store *pg.Store, act pg.OperatorAction) (pg.ActAnswer, error) {
				return pg.Decode[pg.ActAnswer](store.ResumeChannel(ctx, act, args[0]))
			})
		},
	}
	m.flags(cmd)
	return cmd
}
