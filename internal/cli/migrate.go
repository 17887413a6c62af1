package cli

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"autopost/db"
	"autopost/internal/config"
	"autopost/internal/daemon"
	"autopost/internal/pg/schema"
	"autopost/internal/table"
)

func migrateCommand() *cobra.Command {
	var printRoles bool
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Bring the database schema up to date",
		Long: `Bring the database schema up to date. The role needs the right to create roles and the
schema. Without it a superuser runs the statements of --print-roles first.`,
		Example: `  autopost migrate
  autopost migrate --print-roles`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if printRoles {
				_, err := fmt.Fprint(cmd.OutOrStdout(), db.Roles)
				return err
			}
			return withNewDatabase(cmd.Context(), func(ctx context.Context, _ config.Config, opened *daemon.Database) error {
				if err := schema.Migrate(ctx, opened.CoordinatorURL); err != nil {
					return err
				}
				fmt.Fprintln(os.Stderr, "the schema is up to date")
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&printRoles, "print-roles", false, "print the SQL that a superuser runs once, and change nothing")
	cmd.AddCommand(migrateStatusCommand())
	return cmd
}

func migrateStatusCommand() *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "List the migrations and their state in the database",
		Example: "  autopost migrate status",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withDatabase(cmd.Context(), func(ctx context.Context, _ config.Config, opened *daemon.Database) error {
				list, err := schema.Status(ctx, opened.CoordinatorURL)
				if err != nil {
					return err
				}
				type migration struct {
					Version int64  `json:"version"`
					Name    string `json:"name"`
					Applied bool   `json:"applied"`
				}
				items := make([]migration, 0, len(list))
				rows := make([][]any, 0, len(list))
				for _, m := range list {
					items = append(items, migration{m.Version, m.Name, m.Applied})
					rows = append(rows, []any{m.Version, m.Name, m.Applied})
				}
				return out.rows(items, table.Table{Columns: []string{"version", "name", "applied"}, Rows: rows})
			})
		},
	}
	out.add(cmd)
	return cmd
}
