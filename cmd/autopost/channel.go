package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
)

func channelCommand() *cobra.Command {
	return family("channel", "Add, discover, list, change, pause, resume, check and import channels",
		channelPutCommand("add ID", "Add a channel", absent), channelPutCommand("set ID", "Change a channel", present),
		channelDiscoverCommand(), channelListCommand(), channelShowCommand(), channelRemoveCommand(), channelImportCommand(), channelPauseCommand(), channelResumeCommand(), channelCheckCommand())
}

func channelPauseCommand() *cobra.Command {
	var m manual
	var pause time.Duration
	cmd := &cobra.Command{
		Use:   "pause ID",
		Short: "Begin no call of a channel for a time",
		Long: `Begin no call of a channel for a time, whatever pause it had. Its queue waits, and
goes on by itself afterwards; what is being sent ends as it will.`,
		Args: oneArgument("id of a channel"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if pause < time.Second {
				return misuse{fmt.Errorf("%s needs --for with a second or more, as in --for 1h", cmd.CommandPath())}
			}
			m.subject = "channel " + args[0]
			return m.run(cmd, func(ctx context.Context, store *pg.Store, act pg.Act) (pg.ActAnswer, error) {
				return store.PauseChannel(ctx, act, args[0], pause)
			})
		},
	}
	cmd.Flags().DurationVar(&pause, "for", 0, "how long, as in 90s, 30m or 1h (required)")
	m.flags(cmd)
	return cmd
}

func channelResumeCommand() *cobra.Command {
	var m manual
	cmd := &cobra.Command{
		Use:   "resume ID",
		Short: "Enable a channel and end its pause",
		Long: `Enable a channel, end its pause and forget its failures; what waits goes at once.
A wait that the platform asked for stays.`,
		Args: oneArgument("id of a channel"),
		RunE: func(cmd *cobra.Command, args []string) error {
			m.subject = "channel " + args[0]
			return m.run(cmd, func(ctx context.Context, store *pg.Store, act pg.Act) (pg.ActAnswer, error) {
				return store.ResumeChannel(ctx, act, args[0])
			})
		},
	}
	m.flags(cmd)
	return cmd
}
