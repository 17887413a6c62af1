package cli

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"autopost"
	"autopost/internal/pg"
	"autopost/internal/table"
)

func deliveriesCommand() *cobra.Command {
	return parentCommand("deliveries", "Manage deliveries and change sent posts",
		append(postChangeCommands(), deliveriesListCommand(), deliveriesRequeueCommand(), deliveriesResolveCommand(), deliveriesSkipCommand())...)
}

func deliveriesSkipCommand() *cobra.Command {
	var m operatorFlags
	cmd := &cobra.Command{
		Use:   "skip ID...",
		Short: "End waiting deliveries without sending them",
		Long: `End waiting deliveries (queued, retry, held) without sending them. They become dead.
autopost deliveries requeue returns them to the queue.`,
		Example: `  autopost deliveries skip 0198c5a1-7c3e-7a51-9d56-0f3ac1d3b1aa --reason "outdated"`,
		Args:    deliveryIDs,
		RunE: func(cmd *cobra.Command, ids []string) error {
			return m.run(cmd, func(ctx context.Context, store *pg.Store, act pg.OperatorAction) (pg.ActAnswer, error) {
				return pg.Decode[pg.ActAnswer](store.SkipDeliveries(ctx, act, ids))
			})
		},
	}
	m.flags(cmd)
	return cmd
}

var deliveryIDs = atLeastOneID("delivery", "autopost deliveries list")

// deliveryStatuses are all statuses of a delivery.
var deliveryStatuses = []autopost.Status{
	autopost.StatusQueued, autopost.StatusClaimed, autopost.StatusSending, autopost.StatusSent,
	autopost.StatusRetry, autopost.StatusDeduped, autopost.StatusFailedPermanent, autopost.StatusDead,
}

func deliveriesListCommand() *cobra.Command {
	var f readFlags
	var filter pg.DeliveryFilter
	var limit int
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List deliveries, newest first",
		Example: "  autopost deliveries list --status dead --channel city",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if filter.Status != "" && !slices.Contains(deliveryStatuses, autopost.Status(filter.Status)) {
				return usageError{fmt.Errorf("--status must be a status of deliveries, got %q: run %s --help", filter.Status, cmd.CommandPath())}
			}
			return f.run(cmd, func(ctx context.Context, store *pg.Store, workspace string) error {
				list, err := store.ListDeliveries(ctx, workspace, filter, limit)
				if err != nil {
					return err
				}
				return printDeliveries(list, f.asJSON)
			})
		},
	}
	cmd.Flags().StringVar(&filter.Status, "status", "", "queued, claimed, sending, sent, retry, deduped, failed_permanent or dead (default: all)")
	cmd.Flags().StringVar(&filter.ChannelID, "channel", "", "channel id (default: all)")
	limitFlag(cmd, &limit)
	f.add(cmd)
	return cmd
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
	return table.Print(os.Stdout, asJSON, []string{"delivery_id", "channel_id", "status", "attempt", "next_retry_at", "last_error", "text"}, rows)
}
