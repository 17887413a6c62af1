package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
)

func budgetCommand() *cobra.Command {
	return family("budget", "Bound what may be spent with a credential in a month, where posts cost money", budgetListCommand(), budgetShowCommand(), budgetSetCommand())
}

func budgetListCommand() *cobra.Command {
	return listing("List the budgets and how much of each is spent this month, in dollars", func(ctx context.Context, store *pg.Store, workspace string) ([]string, [][]any, error) {
		list, err := store.ListBudgets(ctx, workspace, listLimit)
		rows := make([][]any, 0, len(list))
		for _, b := range list {
			rows = append(rows, []any{b.AuthRef, b.MonthUSD, b.SpentUSD, b.EndsAt})
		}
		return []string{"auth_ref", "month_usd", "spent_usd", "ends_at"}, rows, err
	})
}

func budgetShowCommand() *cobra.Command {
	var workspace string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show the budget of a credential, and what this month's money went for",
		Args:  oneArgument("name of a credential"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withWorkspace(cmd.Context(), workspace, func(ctx context.Context, store *pg.Store, workspace string) error {
				list, err := store.ListBudgets(ctx, workspace, listLimit)
				if err != nil {
					return err
				}
				i := slices.IndexFunc(list, func(b pg.BudgetRow) bool { return b.AuthRef == args[0] })
				if i < 0 {
					return fmt.Errorf("credential %s of workspace %s has no budget: autopost budget set %s --month-usd 25 gives it one", args[0], workspace, args[0])
				}
				raw, err := json.Marshal(list[i])
				if err != nil {
					return err
				}
				if asJSON {
					fmt.Fprintln(os.Stdout, string(raw))
					return nil
				}
				return showObject(raw, "uses")
			})
		},
	}
	workspaceFlag(cmd, &workspace)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func budgetSetCommand() *cobra.Command {
	p := newPutting("budget")
	cmd := &cobra.Command{
		Use:   "set NAME",
		Short: "Bound what may be spent with a credential in a calendar month (UTC); --unset month_usd lifts it",
		Long: `Bound what may be spent with a credential in a calendar month (UTC), by the prices that
autopost reckons with; what the bill says is the platform's. Where the money does not
reach, the queue of the channel waits in its order. --unset month_usd lifts the budget.`,
		Args: oneArgument("name of a credential"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.write(cmd, "budget of "+args[0], whatever, func(ctx context.Context, store *pg.Store, act pg.Act, fields pg.Fields) (pg.PutAnswer, error) {
				return store.PutBudget(ctx, act, args[0], fields)
			})
		},
	}
	workspaceFlag(cmd, &p.act.Workspace)
	p.flags(cmd)
	return cmd
}
