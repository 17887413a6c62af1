package api

import (
	"context"
	"net/http"

	"autopost/internal/api/rest"
)

type retryPolicy struct {
	RetryPolicyID string  `json:"retry_policy_id" example:"x/*" doc:"PLATFORM/CODE; * means all. Escape its slashes in a path."`
	Platform      string  `json:"platform" example:"x"`
	Code          string  `json:"code" example:"*"`
	Kind          string  `json:"kind" enum:"exponential,ladder" example:"ladder"`
	BaseMS        int64   `json:"base_ms" example:"60000" doc:"First wait of kind exponential."`
	Factor        float64 `json:"factor" example:"2" doc:"Growth of the wait per attempt."`
	CapMS         int64   `json:"cap_ms" example:"600000" doc:"Longest wait of kind exponential."`
	LadderMS      []int64 `json:"ladder_ms" nullable:"false" example:"[60000,300000]" doc:"Waits of kind ladder; the last repeats."`
	Jitter        float64 `json:"jitter" example:"0.2" doc:"Random part of a wait."`
	MaxAttempts   *int    `json:"max_attempts" nullable:"true" example:"6" doc:"Largest number of calls; null means the setting max_attempts."`
	CostsAttempt  bool    `json:"costs_attempt" doc:"Whether a failure uses an attempt. If not, max_attempts bounds such failures."`
	Own           bool    `json:"own" doc:"Whether it belongs to this workspace. Others belong to the installation."`
}

func registerRetryPolicies(d *server) {
	listOf[retryPolicy](d, "retry-policy", "retry_policy_id", "retry-policies", "/retry-policies", "List retry policies")
	rest.Register(d.Server, rest.Operation{
		ID: "put-retry-policy", Method: http.MethodPatch, Path: "/retry-policies/{id}", Summary: "Set how a workspace retries a failure", Answer: put{},
		Change:      changeOf("retry_policy"),
		Example:     map[string]any{"kind": "ladder", "ladder_ms": []int{60_000, 300_000}, "max_attempts": 3, "reason": "calls are paid for"},
		Description: "The id is PLATFORM/CODE. Changes only the given fields; null restores the inherited value. It applies from the next failure, in this workspace alone.",
	}, func(ctx context.Context, in *putInput) (rest.Reply, error) {
		return d.patch(ctx, in.AuditedWrite, rest.Change{DryRun: in.DryRun, Subject: in.ID}, in.Body, func(ctx context.Context, a rest.OperatorAction, fields any) (rest.Written, error) {
			return d.db.PutRetryPolicy(ctx, a, in.ID, fields)
		})
	})
}
