package cli

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"autopost/internal/config"
	"autopost/internal/daemon"
	"autopost/internal/pg/schema"
)

func seedCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "seed FILE.sql",
		Short: "Run an SQL file as the schema owner, in one transaction",
		Long: `Run an SQL file as the schema owner, in one transaction. Use it to insert rows of
configuration: workspaces, channels, endpoints and others. db/seed.sql is an example.`,
		Example: "  autopost seed db/seed.sql",
		Args:    oneArgument("SQL file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			script, err := os.ReadFile(args[0])
			if err != nil {
				return usageError{err}
			}
			return withDatabase(cmd.Context(), func(ctx context.Context, _ config.Config, db *daemon.Database) error {
				if err := db.MigratePrivate(ctx); err != nil {
					return err
				}
				if err := schema.Seed(ctx, db.CoordinatorURL, string(script)); err != nil {
					return fmt.Errorf("%s: %w", args[0], err)
				}
				return nil
			})
		},
	}
}
