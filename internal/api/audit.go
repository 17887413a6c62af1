package api

import (
	"context"
	"encoding/json"
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

// AuditVerdict is the result of a check of the audit log.
type AuditVerdict struct {
	OK     bool         `json:"ok" doc:"Whether no fault was found."`
	Rows   int64        `json:"rows" example:"17" doc:"The number of rows that were checked."`
	Seq    int64        `json:"seq" example:"17" doc:"The position of the last row; 0 for an empty log."`
	Hash   string       `json:"hash" doc:"The hash of the last row."`
	Faults []AuditFault `json:"faults" nullable:"false" doc:"The first 100 faults."`
}

// AuditFault is a row of the audit log that breaks its chain. ID is nil for missing rows.
type AuditFault struct {
	What string  `json:"what" example:"the row was changed" doc:"The fault in words."`
	Seq  int64   `json:"seq" doc:"The position of the row."`
	ID   *string `json:"id" format:"uuid" nullable:"true" doc:"The row; null if it is missing."`
}

// AuditHead is the end of the chain of an audit log.
type AuditHead struct {
	Seq  int64  `json:"seq" example:"17" doc:"The position of the last row; 0 for an empty log."`
	Hash string `json:"hash" doc:"The hash of the last row and all earlier ones."`
}

type auditHeadInput struct {
	Seq  int64  `query:"seq" minimum:"0" doc:"The seq of an earlier answer of GET /audit/head. Requires hash."`
	Hash string `query:"hash" pattern:"^[0-9a-f]{64}$" doc:"The hash of that answer. The log must still contain this row."`
}

var audit = rest.List{Function: "list_audit", Key: rest.ByID("id")}

func registerAudit(d *server) {
	rest.Register(d.Server, rest.Operation{
		ID: "list-audit", Method: http.MethodGet, Path: "/audit", Summary: "List the audit log, newest first", Answer: rest.Listed[auditRow]{},
		Description: "Manual changes with operator, reason, and the values before and after.",
	}, func(ctx context.Context, in *auditInput) (rest.Reply, error) {
		return d.Read(ctx, audit, in.Page, map[string]any{"action": in.Action, "subject": in.Subject, "operator": in.Operator, "since": in.Since, "until": in.Until})
	})
	rest.Register(d.Server, rest.Operation{
		ID: "get-audit-head", Method: http.MethodGet, Path: "/audit/head", Summary: "Get the end of the audit log", Answer: AuditHead{},
		Description: "Keep the answer outside the database: GET /audit/verify shows later whether earlier rows were changed or removed.",
	}, func(ctx context.Context, _ *struct{}) (rest.Reply, error) {
		return d.Get(ctx, "", func(ctx context.Context, workspace string) (json.RawMessage, error) {
			seq, hash, err := d.db.AuditHead(ctx, workspace)
			return encoded(AuditHead{seq, hash}, err)
		})
	})
	rest.Register(d.Server, rest.Operation{
		ID: "verify-audit", Method: http.MethodGet, Path: "/audit/verify", Summary: "Check the hash chain of the audit log", Answer: AuditVerdict{},
		Description: "Checks that each row is unchanged and that none is missing. With seq and hash the log must also contain an earlier end.",
	}, func(ctx context.Context, in *auditHeadInput) (rest.Reply, error) {
		var head any
		if in.Seq > 0 || in.Hash != "" {
			if in.Hash == "" {
				return rest.Reply{}, rest.Wrong("query.hash", "must be set with seq", "send both values of GET /audit/head")
			}
			head = AuditHead{in.Seq, in.Hash}
		}
		return d.Get(ctx, "", func(ctx context.Context, workspace string) (json.RawMessage, error) {
			return encoded(d.db.VerifyAudit(ctx, workspace, head))
		})
	})
}
