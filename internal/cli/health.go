package cli

import (
	"context"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
)

func healthCommand() *cobra.Command {
	var f readFlags
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Show the health of a workspace",
		Long: `Show the health of a workspace: its queue, failures, credentials, sources, alerts and
last posts.`,
		Example: "  autopost health --workspace news",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd, func(ctx context.Context, store *pg.Store, workspace string) error {
				raw, err := store.HealthSnapshot(ctx, workspace)
				if err != nil {
					return err
				}
				return f.printObject(raw, "queue", "alerts")
			})
		},
	}
	f.add(cmd)
	return cmd
}
