package cli

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
	"autopost/internal/table"
)

func verifyCommand() *cobra.Command {
	var workspace string
	var out output
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
				return verify(ctx, store, workspace, out)
			})
		},
	}
	cmd.Flags().StringVar(&workspace, "workspace", "", "workspace id (default: all active workspaces)")
	out.add(cmd)
	return cmd
}

// verified is the result of one invariant in one workspace.
type verified struct {
	Workspace  string          `json:"workspace"`
	Invariant  string          `json:"invariant"`
	Title      string          `json:"title"`
	Violations int64           `json:"violations"`
	Sample     json.RawMessage `json:"sample,omitempty"`
}

func verify(ctx context.Context, store *pg.Store, workspace string, out output) error {
	workspaces := []string{workspace}
	if workspace == "" {
		var err error
		if workspaces, err = store.ListWorkspaces(ctx); err != nil {
			return err
		}
	}
	var items []verified
	rows := [][]any{}
	broken := 0
	for _, w := range workspaces {
		findings, err := store.Verify(ctx, w)
		if err != nil {
			return err
		}
		for _, f := range findings {
			item := verified{Workspace: w, Invariant: f.Invariant, Title: f.Title, Violations: f.Violations}
			if f.Violations > 0 {
				broken++
				item.Sample = f.Sample
			}
			items = append(items, item)
			rows = append(rows, []any{w, f.Invariant, f.Violations, f.Title, valueText(item.Sample)})
		}
	}
	err := out.rows(items, table.Table{
		Columns: []string{"workspace", "id", "wrong", "invariant", "sample"}, Optional: []string{"sample"}, Rows: rows,
		Empty: "Nothing to check, because no workspace is active: run autopost workspace add ID.",
	})
	if err != nil {
		return err
	}
	if broken > 0 {
		note("%s; --json prints the rows", counted(broken, "invariant does not hold", "invariants do not hold"))
		return errSilent
	}
	return nil
}
