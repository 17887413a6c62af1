package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"autopost"
	"autopost/internal/pg"
)

// maxRequeued is the largest number of deliveries that one call returns to the queue.
const maxRequeued = 1000

func deliveriesRequeueCommand() *cobra.Command {
	var m operatorFlags
	var channel, code string
	cmd := &cobra.Command{
		Use:   "requeue [ID...]",
		Short: "Return dead or failed deliveries to the queue",
		Long: `Return dead or failed deliveries to the queue, with one more attempt: those with the
given ids, or all that failed with an error code. One call takes at most 1000, oldest
first. If the channel caused the failure, resume the channel first. A delivery is refused
if its channel got the same content since.`,
		Example: `  autopost deliveries requeue 0198c5a1-7c3e-7a51-9d56-0f3ac1d3b1aa --reason "fixed"
  autopost deliveries requeue --code http_503 --channel city --reason "platform is back"`,
		Args: func(cmd *cobra.Command, ids []string) error {
			if code == "" {
				if channel != "" {
					return usageError{errors.New("--channel must be used with --code: run autopost deliveries list for the codes")}
				}
				return deliveryIDs(cmd, ids)
			}
			return noArguments(cmd, ids)
		},
		RunE: func(cmd *cobra.Command, ids []string) error {
			return m.run(cmd, func(ctx context.Context, store *pg.Store, act pg.OperatorAction) (pg.ActAnswer, error) {
				if code != "" {
					var err error
					if ids, err = failedWith(ctx, store, act.Workspace, channel, code); err != nil {
						return pg.ActAnswer{}, err
					}
				}
				return pg.Decode[pg.ActAnswer](store.ManualRequeue(ctx, act, ids))
			})
		},
	}
	cmd.Flags().StringVar(&code, "code", "", "error code: all deliveries that failed with it, instead of ids")
	cmd.Flags().StringVar(&channel, "channel", "", "with --code: channel id (default: all)")
	m.flags(cmd)
	return cmd
}

// failedWith returns the ids of deliveries that failed with a code, oldest first.
func failedWith(ctx context.Context, store *pg.Store, workspace, channel, code string) ([]string, error) {
	var ids []string
	for _, status := range []autopost.Status{autopost.StatusDead, autopost.StatusFailedPermanent} {
		list, err := store.ListDeliveries(ctx, workspace, pg.DeliveryFilter{Status: string(status), ChannelID: channel}, 10*maxRequeued)
		if err != nil {
			return nil, err
		}
		for _, d := range list {
			var failure struct{ Code string }
			if json.Unmarshal(d.LastError, &failure) == nil && failure.Code == code {
				ids = append(ids, d.DeliveryID)
			}
		}
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("nothing was changed: no failed delivery has the code %q: run autopost deliveries list for the codes", code)
	}
	slices.Sort(ids) // ids sort by creation time
	return ids[:min(len(ids), maxRequeued)], nil
}
