package setup

import (
	"context"
	"net/http"
	"time"

	"autopost/internal/admin/door"
)

type quota struct {
	QuotaID       string  `json:"quota_id" example:"channel:news-ru/3600" doc:"SUBJECT/SECONDS; its slashes are escaped in a path."`
	Subject       string  `json:"subject" example:"channel:news-ru" doc:"channel:ID, or group:PLATFORM/GROUP for all its channels together."`
	WindowSeconds int     `json:"window_seconds" example:"3600"`
	MaxSends      int     `json:"max_sends" example:"8"`
	Used          int     `json:"used" example:"3" doc:"In the window that ends now."`
	FreeAt        instant `json:"free_at" nullable:"true" doc:"When there is room again; null where there is."`
}

type budget struct {
	AuthRef  string             `json:"auth_ref" example:"x-main"`
	MonthUSD float64            `json:"month_usd" example:"25" doc:"Dollars that may be spent in a calendar month (UTC)."`
	SpentUSD float64            `json:"spent_usd" example:"3.415" doc:"Reckoned by autopost's prices since the month began."`
	Uses     map[string]float64 `json:"uses" doc:"What it went for: post, and other uses of the platform by name."`
	EndsAt   time.Time          `json:"ends_at" doc:"The end of the month."`
}

func registerQuotas(d *door.Door) {
	listOf[quota](d, "quota", "quota_id", "quotas", "/quotas", "Quotas and how much of each is used")
	door.Register(d, door.Operation{
		ID: "put-quota", Method: http.MethodPatch, Path: "/quotas/{id}", Summary: "Bound the posts of a channel or a rate group in any window", Answer: put{},
		Example:     map[string]any{"max_sends": 8, "reason": "not too loud"},
		Description: "Makes the quota where there is none. It acts on the next post.",
	}, func(ctx context.Context, in *putInput) (door.Reply, error) {
		return patch(ctx, d, in.Act, door.Write{Function: "put_quota", DryRun: in.DryRun, Args: map[string]any{"id": in.ID}}, in.Body)
	})
	door.Register(d, door.Operation{
		ID: "lift-quota", Method: http.MethodPost, Path: "/quotas/{id}/lift", Summary: "Lift a quota", Answer: put{}, Example: reasonExample,
		Description: "It is gone, and what it held goes on.",
	}, func(ctx context.Context, in *actInput) (door.Reply, error) {
		return d.Do(ctx, in.Act, door.Write{Function: "delete_quota", Reason: why(in.Body), DryRun: in.DryRun, Args: map[string]any{"id": in.ID}})
	})
}

func registerBudgets(d *door.Door) {
	listOf[budget](d, "budget", "auth_ref", "budgets", "/budgets", "Budgets and how much of each is spent")
	door.Register(d, door.Operation{
		ID: "put-budget", Method: http.MethodPatch, Path: "/budgets/{id}", Summary: "Bound what is spent with a credential in a month", Answer: put{},
		Example:     map[string]any{"month_usd": 25, "reason": "the marketing budget"},
		Description: "By the credential's name. month_usd null lifts it. It acts on the next post; where the money does not reach, the queue waits.",
	}, func(ctx context.Context, in *putInput) (door.Reply, error) {
		return patch(ctx, d, in.Act, door.Write{Function: "put_budget", DryRun: in.DryRun, Args: map[string]any{"id": in.ID}}, in.Body)
	})
}
