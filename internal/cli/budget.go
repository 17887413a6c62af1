package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
	"autopost/internal/table"
)

func budgetCommand() *cobra.Command {
	return parentCommand("budget", "Limit the money that a credential may spend in a month", budgetListCommand(), budgetShowCommand(), budgetSetCommand())
}

func budgetListCommand() *cobra.Command {
	return listing("List the budgets and their use this month, in US dollars", "  autopost budget list",
		func(ctx context.Context, store *pg.Store, workspace string) ([]pg.BudgetRow, table.Table, error) {
			list, err := store.ListBudgets(ctx, workspace, listLimit)
			rows := make([][]any, 0, len(list))
			for _, b := range list {
				rows = append(rows, []any{b.AuthRef, b.MonthUSD.String(), b.SpentUSD.String(), b.EndsAt})
			}
			return list, table.Table{
				Columns: []string{"credential", "month_usd", "spent_usd", "month_ends"}, Rows: rows,
				Empty: "No budget: run autopost budget set NAME --month-usd 25 to limit a credential.",
			}, err
		})
}

func budgetShowCommand() *cobra.Command {
	var f readFlags
	cmd := &cobra.Command{
		Use:     "show NAME",
		Short:   "Show the budget of a credential and its use by action",
		Example: "  autopost budget show x-main",
		Args:    oneArgument("credential name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, func(ctx context.Context, store *pg.Store, workspace string) error {
				list, err := store.ListBudgets(ctx, workspace, listLimit)
				if err != nil {
					return err
				}
				i := slices.IndexFunc(list, func(b pg.BudgetRow) bool { return b.AuthRef == args[0] })
				if i < 0 {
					return fmt.Errorf("credential %s of workspace %s has no budget: run autopost budget set %s --month-usd 25 to set one", args[0], workspace, args[0])
				}
				raw, err := json.Marshal(list[i])
				if err != nil {
					return err
				}
				return f.printObject(raw, "uses")
			})
		},
	}
	f.addOne(cmd)
	return cmd
}

func budgetSetCommand() *cobra.Command {
	p := newUpsert("budget")
	cmd := &cobra.Command{
		Use:   "set NAME",
		Short: "Set the monthly budget of a credential",
		Long: `Set the money that a credential may spend in a calendar month (UTC). autopost counts
with its own price list; the bill of the platform may differ. When the budget is used
up, the deliveries of its channels wait in their order. --unset month_usd removes the
budget.`,
		Example: `  autopost budget set x-main --month-usd 25 --reason "limit for the pilot"`,
		Args:    oneArgument("credential name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.write(cmd, "budget of "+args[0], mayExist, func(ctx context.Context, store *pg.Store, act pg.OperatorAction, fields pg.Fields) (pg.PutAnswer, error) {
				return pg.Decode[pg.PutAnswer](store.PutBudget(ctx, act, args[0], fields))
			})
		},
	}
	workspaceFlag(cmd, &p.act.Workspace)
	p.flags(cmd)
	return cmd
}
