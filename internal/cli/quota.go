package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
	"autopost/internal/table"
)

func quotaCommand() *cobra.Command {
	return parentCommand("quota", "Limit the number of posts in a time window", quotaListCommand(), quotaSetCommand(), quotaRemoveCommand())
}

func quotaListCommand() *cobra.Command {
	return listing("List the quotas and their use", "  autopost quota list",
		func(ctx context.Context, store *pg.Store, workspace string) ([]pg.QuotaRow, table.Table, error) {
			list, err := store.ListQuotas(ctx, workspace, listLimit)
			rows := make([][]any, 0, len(list))
			for _, q := range list {
				rows = append(rows, []any{q.Subject, shortDuration(time.Duration(q.WindowSeconds) * time.Second), q.MaxSends, q.Counts, q.Used, instantOr(q.FreeAt, "now")})
			}
			return list, table.Table{
				Columns: []string{"subject", "per", "max_sends", "counts", "used", "next_post"}, Rows: rows,
				Empty: "No quota: run autopost quota set to limit the posts of a channel or a rate group.",
			}, err
		})
}

// quotaKey names a quota: a channel or a rate group, and the length of the window.
type quotaKey struct {
	channel, group string
	window         time.Duration
}

func (k *quotaKey) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&k.channel, "channel", "", "channel id")
	cmd.Flags().StringVar(&k.group, "group", "", "rate group as PLATFORM/GROUP: all its channels together")
	durationFlag(cmd, &k.window, "per", 0, "length of the sliding window, like 1h or 1d (required)")
}

func (k *quotaKey) subject() (string, error) {
	switch {
	case (k.channel == "") == (k.group == ""):
		return "", usageError{errors.New("one of --channel and --group must be set: pass the one that the quota limits")}
	case k.window < time.Second:
		return "", usageError{fmt.Errorf("--per must be at least 1s, got %s: write it like --per 1h", k.window)}
	case k.group != "":
		return "group:" + k.group, nil
	default:
		return "channel:" + k.channel, nil
	}
}

func quotaSetCommand() *cobra.Command {
	p := newUpsert("quota")
	var k quotaKey
	cmd := &cobra.Command{
		Use:     "set",
		Short:   "Set the quota of a channel or rate group",
		Example: `  autopost quota set --channel city --per 1h --max-sends 8 --reason "agreed with the editors"`,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			subject, err := k.subject()
			if err != nil {
				return err
			}
			return p.write(cmd, fmt.Sprintf("quota of %s per %s", subject, shortDuration(k.window)), mayExist,
				func(ctx context.Context, store *pg.Store, act pg.OperatorAction, fields pg.Fields) (pg.PutAnswer, error) {
					return pg.Decode[pg.PutAnswer](store.PutQuota(ctx, act, pg.QuotaID(subject, k.window), fields))
				})
		},
	}
	k.flags(cmd)
	workspaceFlag(cmd, &p.act.Workspace)
	p.flags(cmd)
	return cmd
}

func quotaRemoveCommand() *cobra.Command {
	var m operatorFlags
	var k quotaKey
	cmd := &cobra.Command{
		Use:     "remove",
		Short:   "Remove a quota",
		Example: `  autopost quota remove --channel city --per 1h --reason "not needed any more"`,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			subject, err := k.subject()
			if err != nil {
				return err
			}
			return m.put(cmd, fmt.Sprintf("quota of %s per %s", subject, shortDuration(k.window)), func(ctx context.Context, store *pg.Store) (pg.PutAnswer, error) {
				return pg.Decode[pg.PutAnswer](store.DeleteQuota(ctx, m.act, pg.QuotaID(subject, k.window)))
			})
		},
	}
	k.flags(cmd)
	m.flags(cmd)
	m.requireReason(cmd)
	return cmd
}
