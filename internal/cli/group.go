package cli

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
	"autopost/internal/table"
)

func groupCommand() *cobra.Command {
	return parentCommand("group", "Manage rate groups", groupListCommand(), groupSetCommand(), groupPauseCommand(),
		groupSwitchCommand("disable", "Disable all channels of a rate group; their queues stay", (*pg.Store).DisableGroup),
		groupSwitchCommand("enable", "Enable all channels of a rate group and end their pauses", (*pg.Store).EnableGroup, "resume"))
}

func groupPauseCommand() *cobra.Command {
	var pause time.Duration
	cmd := groupSwitchCommand("pause", "Pause all channels of a rate group for a duration", func(store *pg.Store, ctx context.Context, act pg.OperatorAction, platform, group string) (pg.Written, error) {
		return store.PauseGroup(ctx, act, platform, group, pause)
	})
	cmd.Long = `Pause all channels of a rate group for a duration. The new pause replaces earlier ones.
Deliveries wait in the queue and are sent when the pause ends. Calls that are running are
not stopped. autopost group resume ends the pause.`
	cmd.Example = `  autopost group pause news-bot --platform telegram --for 1h --reason "incident"`
	durationFlag(cmd, &pause, "for", 0, "duration of the pause, like 90s, 2h or 2d (required)")
	cmd.PreRunE = func(*cobra.Command, []string) error { return checkPause(pause) }
	return cmd
}

func groupSwitchCommand(verb, short string, do func(*pg.Store, context.Context, pg.OperatorAction, string, string) (pg.Written, error), aliases ...string) *cobra.Command {
	var m operatorFlags
	var platform string
	cmd := &cobra.Command{
		Use:     verb + " GROUP",
		Aliases: aliases,
		Short:   short,
		Example: "  autopost group " + verb + ` news-bot --platform telegram --reason "incident"`,
		Args:    oneArgument("rate group"),
		RunE: func(cmd *cobra.Command, args []string) error {
			m.subject = strings.TrimSpace("group " + args[0] + " " + platform)
			return m.run(cmd, func(ctx context.Context, store *pg.Store, act pg.OperatorAction) (pg.ActAnswer, error) {
				return pg.Decode[pg.ActAnswer](do(store, ctx, act, platform, args[0]))
			})
		},
	}
	cmd.Flags().StringVar(&platform, "platform", "", "platform of the group (default: the groups of that name on all platforms)")
	m.flags(cmd)
	return cmd
}

func groupListCommand() *cobra.Command {
	return listing("List the rate groups, their limits and waits", "  autopost group list",
		func(ctx context.Context, store *pg.Store, workspace string) ([]pg.RateGroupRow, table.Table, error) {
			list, err := store.ListRateGroups(ctx, workspace, listLimit)
			rows := make([][]any, 0, len(list))
			for _, g := range list {
				rows = append(rows, []any{g.Platform, g.RateGroup, limitOrNone(g.RateRPS), limitOrNone(g.PlatformRPS), g.Channels, g.EnabledChannels,
					g.CooldownUntil, g.QuotaUntil, g.BreakerOpenedAt})
			}
			return list, table.Table{
				Columns: []string{"platform", "rate_group", "rate_rps", "platform_rps", "channels", "enabled", "cooldown_until", "quota_until", "breaker_opened"},
				Details: []string{"cooldown_until", "quota_until", "breaker_opened"}, Rows: rows,
				Empty: "No rate group: the first channel of a credential creates one. Run autopost channel add.",
			}, err
		})
}

func groupSetCommand() *cobra.Command {
	p := newUpsert("group")
	var platform string
	cmd := &cobra.Command{
		Use:     "set GROUP",
		Short:   "Set the shared rate limit of a rate group",
		Example: `  autopost group set news-bot --platform telegram --rate-rps 20 --reason "platform limit"`,
		Args:    oneArgument("rate group"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if platform == "" {
				return usageError{errors.New("--platform must be set: write it like --platform telegram")}
			}
			return p.write(cmd, "group "+platform+"/"+args[0], mayExist, func(ctx context.Context, store *pg.Store, act pg.OperatorAction, fields pg.Fields) (pg.PutAnswer, error) {
				return pg.Decode[pg.PutAnswer](store.PutRateGroup(ctx, act, platform, args[0], fields))
			})
		},
	}
	cmd.Flags().StringVar(&platform, "platform", "", "platform of the group (required)")
	workspaceFlag(cmd, &p.act.Workspace)
	p.flags(cmd)
	return cmd
}

// limitOrNone prints a limit in messages per second; 0 means that it has none.
func limitOrNone(rps float64) any {
	if rps == 0 {
		return "none"
	}
	return rps
}
