package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
)

func groupCommand() *cobra.Command {
	return family("group", "List and limit rate groups, disable and enable their channels", groupListCommand(), groupSetCommand(),
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
			m.subject = strings.TrimSpace("group " + args[0] + " " + platform)
			return m.run(cmd, func(ctx context.Context, store *pg.Store, act pg.Act) (pg.ActAnswer, error) {
				return do(store, ctx, act, platform, args[0])
			})
		},
	}
	cmd.Flags().StringVar(&platform, "platform", "", "only the group of this platform (default the groups of that name of all)")
	m.flags(cmd)
	return cmd
}

func groupListCommand() *cobra.Command {
	return listing("List the rate groups, their limits and what holds them", func(ctx context.Context, store *pg.Store, workspace string) ([]string, [][]any, error) {
		list, err := store.ListRateGroups(ctx, workspace, listLimit)
		rows := make([][]any, 0, len(list))
		for _, g := range list {
			rows = append(rows, []any{g.Platform, g.RateGroup, g.RateRPS, g.Channels, g.EnabledChannels,
				instantOr(g.CooldownUntil, ""), instantOr(g.QuotaUntil, ""), instantOr(g.BreakerOpenedAt, "")})
		}
		return []string{"platform", "rate_group", "rate_rps", "channels", "enabled", "cooldown_until", "quota_until", "breaker_opened_at"}, rows, err
	})
}

func groupSetCommand() *cobra.Command {
	p := newPutting("group")
	var platform string
	cmd := &cobra.Command{
		Use:   "set GROUP",
		Short: "Limit how fast the channels of a rate group send together",
		Args:  oneArgument("rate group"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if platform == "" {
				return misuse{fmt.Errorf("%s needs --platform", cmd.CommandPath())}
			}
			return p.write(cmd, "group "+platform+"/"+args[0], whatever, func(ctx context.Context, store *pg.Store, act pg.Act, fields pg.Fields) (pg.PutAnswer, error) {
				return store.PutRateGroup(ctx, act, platform, args[0], fields)
			})
		},
	}
	cmd.Flags().StringVar(&platform, "platform", "", "platform of the group (required)")
	workspaceFlag(cmd, &p.act.Workspace)
	p.flags(cmd)
	return cmd
}
