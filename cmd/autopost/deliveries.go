package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"autopost"
	"autopost/internal/pg"
)

func deliveriesCommand() *cobra.Command {
	return family("deliveries", "List, requeue, resolve and skip deliveries; edit, delete and pin what was sent",
		append(afterwardsCommands(), deliveriesListCommand(), deliveriesRequeueCommand(), deliveriesResolveCommand(), deliveriesSkipCommand())...)
}

func deliveriesSkipCommand() *cobra.Command {
	var m manual
	cmd := &cobra.Command{
		Use:   "skip ID...",
		Short: "End waiting deliveries without sending them",
		Long: `End deliveries that wait (queued, retry, held) without sending them. They become
dead; requeue brings them back.`,
		Args: deliveryIDs,
		RunE: func(cmd *cobra.Command, ids []string) error {
			return m.run(cmd, func(ctx context.Context, store *pg.Store, act pg.Act) (pg.ActAnswer, error) {
				return store.SkipDeliveries(ctx, act, ids)
			})
		},
	}
	m.flags(cmd)
	return cmd
}

// deliveryIDs demands at least one, each of them a UUID.
func deliveryIDs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return misuse{fmt.Errorf("%s takes the ids of deliveries\nsee %s --help", cmd.CommandPath(), cmd.CommandPath())}
	}
	for _, id := range args {
		if err := isID(id, "a delivery", "autopost deliveries list"); err != nil {
			return err
		}
	}
	return nil
}

// statuses are those that a delivery can have.
var statuses = []autopost.Status{
	autopost.StatusQueued, autopost.StatusClaimed, autopost.StatusSending, autopost.StatusSent,
	autopost.StatusRetry, autopost.StatusDeduped, autopost.StatusFailedPermanent, autopost.StatusDead,
}

func deliveriesListCommand() *cobra.Command {
	var workspace string
	var filter pg.DeliveryFilter
	var limit int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List deliveries, the newest first",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if filter.Status != "" && !slices.Contains(statuses, autopost.Status(filter.Status)) {
				return misuse{fmt.Errorf("there is no status %q\nsee %s --help", filter.Status, cmd.CommandPath())}
			}
			return withStore(cmd.Context(), func(ctx context.Context, store *pg.Store) error {
				chosen, err := chooseWorkspace(ctx, store, workspace)
				if err != nil {
					return err
				}
				list, err := store.ListDeliveries(ctx, chosen, filter, limit)
				if errors.Is(err, pg.ErrArgument) {
					return misuse{err}
				}
				if err != nil {
					return err
				}
				return printDeliveries(list, asJSON)
			})
		},
	}
	workspaceFlag(cmd, &workspace)
	cmd.Flags().StringVar(&filter.Status, "status", "", "only this status: queued, claimed, sending, sent, retry, deduped, failed_permanent or dead")
	cmd.Flags().StringVar(&filter.ChannelID, "channel", "", "only this channel")
	cmd.Flags().IntVar(&limit, "limit", 50, "how many at most, 1 to 10000")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// excerpt is how many characters of a post a table shows.
const excerpt = 40

func excerptOf(text string) string {
	if runes := []rune(text); len(runes) > excerpt {
		return string(runes[:excerpt]) + "…"
	}
	return text
}

func printDeliveries(list []pg.DeliveryRow, asJSON bool) error {
	rows := make([][]any, 0, len(list))
	for _, d := range list {
		var next, failure any = d.NextRetryAt, d.LastError
		text := d.RenderedText
		if !asJSON {
			next, failure = "", string(d.LastError)
			if d.NextRetryAt != nil {
				next = d.NextRetryAt.Format(time.RFC3339)
			}
			text = excerptOf(text)
		}
		rows = append(rows, []any{d.DeliveryID, d.ChannelID, d.Status, d.Attempt, next, failure, text})
	}
	return printTable(os.Stdout, asJSON, []string{"delivery_id", "channel_id", "status", "attempt", "next_retry_at", "last_error", "text"}, rows)
}
