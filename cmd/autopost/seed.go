package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"autopost/internal/config"
	"autopost/internal/pg/schema"
)

func seedCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "seed FILE.sql",
		Short: "Run a file of SQL as the owner of the schema, in one transaction",
		Long: `Run a file of SQL as the owner of the schema, in one transaction: workspaces,
channels, endpoints and whatever else is configured by rows. db/seed.sql is an example.`,
		Args: oneArgument("file of SQL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			script, err := os.ReadFile(args[0])
			if err != nil {
				return misuse{err}
			}
			return withDatabase(cmd.Context(), func(ctx context.Context, _ config.Config, db *database) error {
				if err := db.migratePrivate(ctx); err != nil {
					return err
				}
				if err := schema.Seed(ctx, db.directURL, string(script)); err != nil {
					return fmt.Errorf("%s: %w", args[0], err)
				}
				return nil
			})
		},
	}
}
