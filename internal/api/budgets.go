package api

import (
	"context"
	"net/http"
	"time"

	"autopost/internal/api/rest"
)

type budget struct {
	AuthRef  string             `json:"auth_ref" example:"x-main"`
	MonthUSD float64            `json:"month_usd" example:"25" doc:"The most dollars for a calendar month (UTC)."`
	SpentUSD float64            `json:"spent_usd" example:"3.415" doc:"The cost since the start of the month, by the prices in autopost."`
	Uses     map[string]float64 `json:"uses" doc:"The cost by use: post, and other uses of the platform."`
	EndsAt   time.Time          `json:"ends_at" doc:"The end of the month."`
}

func registerBudgets(d *server) {
	listOf[budget](d, "budget", "auth_ref", "budgets", "/budgets", "List budgets with their spending")
	rest.Register(d.Server, rest.Operation{
		ID: "put-budget", Method: http.MethodPatch, Path: "/budgets/{id}", Summary: "Limit the monthly cost of a credential", Answer: put{},
		Change:      changeOf("budget"),
		Example:     map[string]any{"month_usd": 25, "reason": "the marketing budget"},
		Description: "The id is the name of the credential. month_usd null removes the limit. It applies from the next post. Without money left the queue waits.",
	}, func(ctx context.Context, in *putInput) (rest.Reply, error) {
		return d.patch(ctx, in.AuditedWrite, rest.Change{DryRun: in.DryRun, Subject: in.ID}, in.Body, func(ctx context.Context, a rest.OperatorAction, fields any) (rest.Written, error) {
			return d.db.PutBudget(ctx, a, in.ID, fields)
		})
	})
}
