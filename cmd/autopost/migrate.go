package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"autopost/internal/config"
	"autopost/internal/pg/schema"
)

func migrateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Bring the schema up to date",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withDatabase(cmd.Context(), func(ctx context.Context, _ config.Config, db *database) error {
				if err := schema.Migrate(ctx, db.directURL); err != nil {
					return err
				}
				fmt.Fprintln(os.Stderr, "the schema is up to date")
				return nil
			})
		},
	}
	var asJSON bool
	status := &cobra.Command{
		Use:   "status",
		Short: "List the migrations and whether the database has them",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withDatabase(cmd.Context(), func(ctx context.Context, _ config.Config, db *database) error {
				list, err := schema.Status(ctx, db.directURL)
				if err != nil {
					return err
				}
				rows := make([][]any, 0, len(list))
				for _, m := range list {
					rows = append(rows, []any{m.Version, m.Name, m.Applied})
				}
				return printTable(os.Stdout, asJSON, []string{"version", "name", "applied"}, rows)
			})
		},
	}
	status.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.AddCommand(status)
	return cmd
}
