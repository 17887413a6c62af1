package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
)

// youngestStale is what release_stale demands at least.
const youngestStale = 10 * time.Minute

func releaseStaleCommand() *cobra.Command {
	var m manual
	var olderThan time.Duration
	cmd := &cobra.Command{
		Use:   "release-stale",
		Short: "End claims that have been in flight for too long",
		Long: `End claims that have been in flight for too long, whatever their leases say. What
was never called goes back into the queue; what was is an unknown outcome, and its
channel's on_unknown decides. At most 500 at a time.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if olderThan < youngestStale {
				return misuse{fmt.Errorf("--older-than is less than %s: what is younger may still be under way", youngestStale)}
			}
			return m.run(cmd, func(ctx context.Context, store *pg.Store, act pg.Act) (pg.ActAnswer, error) {
				return store.ReleaseStale(ctx, act, olderThan)
			})
		},
	}
	cmd.Flags().DurationVar(&olderThan, "older-than", youngestStale, "how long in flight, ten minutes or more")
	m.flags(cmd)
	return cmd
}
