package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"autopost"
	"autopost/internal/pg"
	"autopost/internal/table"
)

func deliveriesCommand() *cobra.Command {
	return parentCommand("deliveries", "Manage deliveries and change sent posts",
		append(postChangeCommands(), deliveriesListCommand(), deliveriesRequeueCommand(), deliveriesResolveCommand(), deliveriesSkipCommand(), deliveriesRescheduleCommand())...)
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
	m.requireReason(cmd)
	return cmd
}

var deliveryIDs = atLeastOneID("delivery", "autopost deliveries list")

// deliveryStatuses are all statuses of a delivery.
var deliveryStatuses = []autopost.Status{
	autopost.StatusQueued, autopost.StatusClaimed, autopost.StatusSending, autopost.StatusSent,
	autopost.StatusRetry, autopost.StatusDeduped, autopost.StatusFailedPermanent, autopost.StatusDead,
}

func deliveriesListCommand() *cobra.Command {
	return reading{
		short: "List deliveries, newest first",
		long: `List deliveries, newest first. WHEN is the time of the enqueue. WHY is the last error, or
the reason of the wait. autopost why DELIVERY_ID explains one of them.`,
		example: `  autopost deliveries list --status dead --channel city
  autopost deliveries list --code http_503 --since 2h --wide`,
		function: "list_deliveries",
		filters: []filterFlag{
			{name: "status", key: "status", usage: "only this status", values: statusNames()}, {name: "channel", key: "channel_id", usage: "only this channel"},
			{name: "message", key: "message_id", usage: "only the deliveries of this message"},
			{name: "code", key: "error_code", usage: "only failed or retried deliveries whose last error has this code"}, sinceFlag,
		},
		columns: []column{
			timeColumn("when", "created_at"), fieldColumn("channel", "channel_id"), fieldColumn("status", "status"), {name: "why", of: whyOf}, excerptColumn("rendered_text"),
			detail(fieldColumn("delivery_id", "delivery_id")), detail(fieldColumn("attempt", "attempt")), detail(timeColumn("sent", "sent_at")),
			detail(fieldColumn("message_id", "message_id")),
		},
		empty: "No delivery: run autopost post to enqueue the first post.",
	}.command(nil)
}

func statusNames() []string {
	names := make([]string, 0, len(deliveryStatuses))
	for _, s := range deliveryStatuses {
		names = append(names, string(s))
	}
	return names
}

// whyOf returns why a delivery waits or has failed.
func whyOf(row map[string]any) any {
	next, failure := instantOf(row, "next_retry_at"), errorText(row["last_error"])
	switch row["status"] {
	case string(autopost.StatusSent):
		return ""
	case string(autopost.StatusDeduped):
		return "the channel has this content already"
	case string(autopost.StatusRetry):
		if next == nil {
			return strings.TrimPrefix(failure+"; waits for an operator", "; ")
		}
		return strings.TrimPrefix(failure+"; next attempt "+table.Time(*next), "; ")
	case string(autopost.StatusQueued):
		if at := instantOf(row, "scheduled_for"); at != nil && at.After(time.Now()) {
			return "scheduled for " + table.Time(*at)
		}
	}
	return failure
}
