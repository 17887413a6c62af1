package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
)

func quotaCommand() *cobra.Command {
	return family("quota", "Bound how many posts go out in an hour, a day or any other window", quotaListCommand(), quotaSetCommand(), quotaRemoveCommand())
}

func quotaListCommand() *cobra.Command {
	return listing("List the quotas and how much of each is used", func(ctx context.Context, store *pg.Store, workspace string) ([]string, [][]any, error) {
		list, err := store.ListQuotas(ctx, workspace, listLimit)
		rows := make([][]any, 0, len(list))
		for _, q := range list {
			rows = append(rows, []any{q.Subject, (time.Duration(q.WindowSeconds) * time.Second).String(), q.MaxSends, q.Used, instantOr(q.FreeAt, "")})
		}
		return []string{"subject", "window", "max_sends", "used", "free_at"}, rows, err
	})
}

// limited is what a quota is about.
type limited struct {
	channel, group string
	window         time.Duration
}

func (l *limited) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&l.channel, "channel", "", "id of the channel")
	cmd.Flags().StringVar(&l.group, "group", "", "PLATFORM/GROUP: all channels of a rate group together")
	cmd.Flags().DurationVar(&l.window, "per", 0, "length of the window, as in 1h or 24h (required)")
}

func (l *limited) subject() (string, error) {
	switch {
	case (l.channel == "") == (l.group == ""):
		return "", misuse{errors.New("a quota is of a channel or of a rate group: pass --channel or --group")}
	case l.window < time.Second:
		return "", misuse{errors.New("a quota needs --per with a second or more, as in --per 1h")}
	case l.group != "":
		return "group:" + l.group, nil
	default:
		return "channel:" + l.channel, nil
	}
}

func quotaSetCommand() *cobra.Command {
	p := newPutting("quota")
	var l limited
	cmd := &cobra.Command{
		Use:   "set",
		Short: "Bound the posts of a channel or of a rate group in any window of a length",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			subject, err := l.subject()
			if err != nil {
				return err
			}
			return p.write(cmd, fmt.Sprintf("quota of %s per %s", subject, l.window), whatever,
				func(ctx context.Context, store *pg.Store, act pg.Act, fields pg.Fields) (pg.PutAnswer, error) {
					return store.PutQuota(ctx, act, subject, l.window, fields)
				})
		},
	}
	l.flags(cmd)
	workspaceFlag(cmd, &p.act.Workspace)
	p.flags(cmd)
	return cmd
}

func quotaRemoveCommand() *cobra.Command {
	var m manual
	var l limited
	cmd := &cobra.Command{
		Use:   "remove",
		Short: "Lift a quota; what it held goes on",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			subject, err := l.subject()
			if err != nil {
				return err
			}
			return m.with(cmd, func(ctx context.Context, store *pg.Store) error {
				answer, err := store.DeleteQuota(ctx, m.act, subject, l.window)
				if err != nil {
					return err
				}
				return m.tellPut(fmt.Sprintf("quota of %s per %s", subject, l.window), answer)
			})
		},
	}
	l.flags(cmd)
	m.flags(cmd)
	return cmd
}
