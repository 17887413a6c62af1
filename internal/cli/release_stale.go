package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
)

// minStaleAge is the smallest age that release_stale accepts.
const minStaleAge = 10 * time.Minute

func releaseStaleCommand() *cobra.Command {
	var m operatorFlags
	var olderThan time.Duration
	cmd := &cobra.Command{
		Use:   "release-stale",
		Short: "End claims that have been in flight for too long",
		Long: `End claims that have been in flight for too long, even if their leases are valid. A
delivery whose call did not start returns to the queue. A started call becomes an
unknown outcome, and on_unknown of its channel applies. The command ends at most 500
claims; run it again for more.`,
		Example: `  autopost release-stale --older-than 30m --reason "daemon host is gone"`,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if olderThan < minStaleAge {
				return usageError{fmt.Errorf("--older-than must be at least %s, got %s: a younger claim may still be running", minStaleAge, olderThan)}
			}
			return m.run(cmd, func(ctx context.Context, store *pg.Store, act pg.OperatorAction) (pg.ActAnswer, error) {
				return pg.Decode[pg.ActAnswer](store.ReleaseStale(ctx, act, olderThan))
			})
		},
	}
	durationFlag(cmd, &olderThan, "older-than", minStaleAge, "time in flight, at least 10m")
	m.flags(cmd)
	return cmd
}
