package cli

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
	"autopost/internal/table"
)

func verifyCommand() *cobra.Command {
	var workspace string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Check the invariants of a live database (read-only)",
		Long: `Check the invariants of each workspace in a live database. The check takes no locks and
writes nothing. It exits 1 and prints the wrong rows if an invariant does not hold.`,
		Example: `  autopost verify
  autopost verify --workspace news --json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withStore(cmd.Context(), func(ctx context.Context, store *pg.Store) error {
				return verify(ctx, store, workspace, asJSON)
			})
		},
	}
	cmd.Flags().StringVar(&workspace, "workspace", "", "workspace id (default: all active workspaces)")
	jsonFlag(cmd, &asJSON)
	return cmd
}

func verify(ctx context.Context, store *pg.Store, workspace string, asJSON bool) error {
	workspaces := []string{workspace}
	if workspace == "" {
		var err error
		if workspaces, err = store.ListWorkspaces(ctx); err != nil {
			return err
		}
	}
	var rows [][]any
	broken := 0
	for _, w := range workspaces {
		findings, err := store.Verify(ctx, w)
		if err != nil {
			return err
		}
		for _, f := range findings {
			var sample any = ""
			if f.Violations > 0 {
				broken++
				sample = f.Sample
				if !asJSON {
					sample = string(f.Sample)
				}
			}
			rows = append(rows, []any{w, f.Invariant, f.Title, f.Violations, sample})
		}
	}
	if err := table.Print(os.Stdout, asJSON, []string{"workspace", "invariant", "title", "violations", "sample"}, rows); err != nil {
		return err
	}
	if broken > 0 {
		fmt.Fprintf(os.Stderr, "autopost: %d invariants do not hold\n", broken)
		return errSilent
	}
	return nil
}
