package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
)

func verifyCommand() *cobra.Command {
	var workspace string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Check the invariants of a live database; read-only",
		Long: `Check every invariant that the database alone can know, workspace by workspace,
on a live database and without locks. Exits 1 and shows offending rows when one is broken.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withStore(cmd.Context(), func(ctx context.Context, store *pg.Store) error {
				return verify(ctx, store, workspace, asJSON)
			})
		},
	}
	cmd.Flags().StringVar(&workspace, "workspace", "", "workspace to check (default all active ones)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
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
	if err := printTable(os.Stdout, asJSON, []string{"workspace", "invariant", "title", "violations", "sample"}, rows); err != nil {
		return err
	}
	if broken > 0 {
		fmt.Fprintf(os.Stderr, "%d invariants are broken\n", broken)
		return errSilent
	}
	return nil
}
