package main

import (
	"context"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
)

func groupCommand() *cobra.Command {
	return family("group", "Disable and enable the channels of a rate group",
		groupAct("disable GROUP", "Disable every channel of a rate group; their queues stay", (*pg.Store).DisableGroup),
		groupAct("enable GROUP", "Enable every channel of a rate group and end their pauses", (*pg.Store).EnableGroup))
}

func groupAct(use, short string, do func(*pg.Store, context.Context, pg.Act, string, string) (pg.ActAnswer, error)) *cobra.Command {
	var m manual
	var platform string
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  oneArgument("rate group"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.run(cmd, func(ctx context.Context, store *pg.Store, act pg.Act) (pg.ActAnswer, error) {
				return do(store, ctx, act, platform, args[0])
			})
		},
	}
	cmd.Flags().StringVar(&platform, "platform", "", "only the group of this platform (default the groups of that name of all)")
	m.flags(cmd)
	return cmd
}
