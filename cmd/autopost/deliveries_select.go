package main

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

// selectedAtOnce is how many deliveries one command puts back; the same command takes the next.
const selectedAtOnce = 1000

func deliveriesRequeueCommand() *cobra.Command {
	var m manual
	var channel, code string
	cmd := &cobra.Command{
		Use:   "requeue [ID...]",
		Short: "Put dead or failed deliveries back into the queue",
		Long: `Put dead or failed deliveries back into the queue, with one attempt more: those
that are named, or all that failed with an error code, a thousand at a time, the
oldest first. What failed because of its channel needs the channel resumed first, and
the same content must not be in flight or sent there meanwhile.`,
		Args: func(cmd *cobra.Command, ids []string) error {
			if code == "" {
				if channel != "" {
					return misuse{errors.New("--channel goes with --code: autopost deliveries list shows the codes")}
				}
				return deliveryIDs(cmd, ids)
			}
			return noArguments(cmd, ids)
		},
		RunE: func(cmd *cobra.Command, ids []string) error {
			return m.run(cmd, func(ctx context.Context, store *pg.Store, act pg.Act) (pg.ActAnswer, error) {
				if code != "" {
					var err error
					if ids, err = failedBy(ctx, store, act.Workspace, channel, code); err != nil {
						return pg.ActAnswer{}, err
					}
				}
				return store.ManualRequeue(ctx, act, ids)
			})
		},
	}
	cmd.Flags().StringVar(&code, "code", "", "instead of ids: all that failed with this error code")
	cmd.Flags().StringVar(&channel, "channel", "", "with --code: only those of this channel")
	m.flags(cmd)
	return cmd
}

// failedBy are the ids of what failed with a code, the oldest first.
func failedBy(ctx context.Context, store *pg.Store, workspace, channel, code string) ([]string, error) {
	var ids []string
	for _, status := range []autopost.Status{autopost.StatusDead, autopost.StatusFailedPermanent} {
		list, err := store.ListDeliveries(ctx, workspace, pg.DeliveryFilter{Status: string(status), ChannelID: channel}, 10*selectedAtOnce)
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
		return nil, fmt.Errorf("nothing was changed: nothing that failed has the code %q: autopost deliveries list shows them", code)
	}
	slices.Sort(ids) // ids sort by the time of their making
	return ids[:min(len(ids), selectedAtOnce)], nil
}

func deliveriesResolveCommand() *cobra.Command {
	var m manual
	var found string
	var absent bool
	cmd := &cobra.Command{
		Use:   "resolve ID",
		Short: "Say whether the platform has a post whose outcome nobody knows",
		Long: `Say whether the platform has a post that waits because nobody knows what became of
it. Look into the channel first. What is there counts as sent; what is not goes out.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := oneArgument("id of a delivery")(cmd, args); err != nil {
				return err
			}
			return deliveryIDs(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if (found == "") == !absent {
				return misuse{errors.New("autopost deliveries resolve needs either --found with the platform's id of the message, or --absent")}
			}
			return m.run(cmd, func(ctx context.Context, store *pg.Store, act pg.Act) (pg.ActAnswer, error) {
				return store.ResolveUnknown(ctx, act, args[0], found)
			})
		},
	}
	cmd.Flags().StringVar(&found, "found", "", "it is there: the platform's id of the message")
	cmd.Flags().BoolVar(&absent, "absent", false, "it is not there: send it")
	workspaceFlag(cmd, &m.act.Workspace)
	m.actorFlags(cmd)
	return cmd
}
