package api

import (
	"context"
	"net/http"
	"time"

	"autopost/internal/api/rest"
)

type auditRow struct {
	ID       string    `json:"id" format:"uuid"`
	Seq      int64     `json:"seq" example:"17" doc:"The position in the audit log of the workspace."`
	TS       time.Time `json:"ts"`
	Operator string    `json:"operator" example:"key:0199c6a0-0000-7000-8000-000000000000"`
	Action   string    `json:"action" example:"pause_channel"`
	Reason   string    `json:"reason" example:"ticket 4711"`
	Subject  string    `json:"subject" example:"channel:news-ru"`
	Before   any       `json:"before" doc:"The changed fields before the change."`
	After    any       `json:"after"`
	Hash     string    `json:"hash" doc:"The hash of this row and all earlier ones."`
	Login    string    `json:"login" example:"autopost_engine" doc:"The database role of the session that made the change. It states the operator."`
}

type auditInput struct {
	rest.Page
	Since    string `query:"since" format:"date-time" doc:"From this instant, with offset." example:"2026-12-01T10:00:00Z"`
	Until    string `query:"until" format:"date-time" doc:"Before this instant." example:"2026-12-02T10:00:00Z"`
	Action   string `query:"action" doc:"Only this function." example:"pause_channel"`
	Subject  string `query:"subject" doc:"Only this object." example:"channel:news-ru"`
	Operator string `query:"operator" doc:"Only this operator."`
}

var audit = rest.List{Function: "list_audit", Key: rest.ByID("id")}

func registerAudit(d *server) {
	rest.Register(d.Server, rest.Operation{
		ID: "list-audit", Method: http.MethodGet, Path: "/audit", Summary: "List the audit log, newest first", Answer: rest.Listed[auditRow]{},
		Description: "Manual changes with operator, reason, and the values before and after.",
	}, func(ctx context.Context, in *auditInput) (rest.Reply, error) {
		return d.Read(ctx, audit, in.Page, map[string]any{"action": in.Action, "subject": in.Subject, "operator": in.Operator, "since": in.Since, "until": in.Until})
	})
}
