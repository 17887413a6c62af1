package rest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"autopost/internal/failpoint"
	"autopost/internal/problem"
)

// ReasonHeader is the header with the reason of a change.
const ReasonHeader = "X-Autopost-Reason"

// Once is the parameter of a write that a repeated request must not repeat.
type Once struct {
	IdempotencyKey string `header:"Idempotency-Key" maxLength:"200" example:"6f1c2a52-8a0b-4a51-9d0e-6e1f9a3d2b10" doc:"A new random text for each write. The same request with the same key gets the first answer for 24 hours. Another request with the key is refused."`
}

// AuditedWrite are the parameters of a write that is recorded in the audit log.
type AuditedWrite struct {
	Once
	HeaderReason string `header:"X-Autopost-Reason" maxLength:"500" example:"ticket 4711" doc:"The reason for the audit log. Required here or as reason in the body."`
}

// Dry is the parameter of a change with a dry run.
type Dry struct {
	DryRun bool `query:"dry_run" doc:"Return the changes without making them."`
}

// Reasoned is the reason in a body.
type Reasoned struct {
	Reason string `json:"reason,omitempty" maxLength:"500" example:"ticket 4711" doc:"The reason for the audit log; X-Autopost-Reason may hold it instead."`
}

// Repeated replies to a request that must not run: it was done, it is in progress, or its Idempotency-Key belongs to
// another request. nil means that the request must run. Use it before work outside the database.
func (d *Server) Repeated(ctx context.Context, once Once) (*Reply, error) {
	if once.IdempotencyKey == "" {
		return nil, nil
	}
	key := onceKey(ctx, once)
	written, err := ask(ctx, d, func(ctx context.Context) (Written, error) {
		return d.Store.BeginRequest(ctx, Caller(ctx).WorkspaceID, key)
	})
	if err != nil || written.Status == "fresh" {
		return nil, err
	}
	reply, err := replyTo(written)
	return &reply, err
}

func onceKey(ctx context.Context, once Once) OnceKey {
	return OnceKey{KeyID: Caller(ctx).id(), Key: once.IdempotencyKey, RequestHash: RequestHash(ctx)}
}

// Why returns the reason of a change. inBody is the reason in the body.
func (a AuditedWrite) Why(inBody string) (string, error) {
	reason := strings.TrimSpace(cmp.Or(inBody, a.HeaderReason))
	if reason == "" {
		return "", Wrong("reason", "must be set", "send it in the body or as "+ReasonHeader)
	}
	return reason, nil
}

// Change is the part of a manual change that its request names.
type Change struct {
	// Reason is the reason in the body.
	Reason string
	DryRun bool
	// Subject is the name of the changed object, for the message if it does not exist.
	Subject string
}

// Do makes a manual change and replies with its answer. A change that was refused is a problem.
func (d *Server) Do(ctx context.Context, in AuditedWrite, c Change, write func(context.Context, OperatorAction) (Written, error)) (Reply, error) {
	reason, err := in.Why(c.Reason)
	if err != nil {
		return Reply{}, err
	}
	return d.Change(ctx, in.Once, c.Subject, func(ctx context.Context, a OperatorAction) (Written, error) {
		a.Reason, a.DryRun = reason, c.DryRun
		return write(ctx, a)
	})
}

// Change makes a change without a reason, once, and replies with its answer. A change that was refused is a problem.
// subject is the name of the changed object, for the message if it does not exist.
func (d *Server) Change(ctx context.Context, once Once, subject string, write func(context.Context, OperatorAction) (Written, error)) (Reply, error) {
	reply, err := d.Write(ctx, once, write)
	if err != nil {
		return reply, err
	}
	return reply, refusalOf(reply.Body, subject)
}

// Write makes a change once and replies with its answer, also if the change was refused.
func (d *Server) Write(ctx context.Context, once Once, write func(context.Context, OperatorAction) (Written, error)) (Reply, error) {
	caller := Caller(ctx)
	action := OperatorAction{Workspace: caller.WorkspaceID, Operator: caller.Identity(), Once: onceKey(ctx, once)}
	written, err := ask(ctx, d, func(ctx context.Context) (Written, error) { return write(ctx, action) })
	if err != nil {
		return Reply{}, err
	}
	failpoint.Hit(failpoint.ActCommitted)
	return replyTo(written)
}

// replyTo maps the result of a write to a reply.
func replyTo(written Written) (Reply, error) {
	switch written.Status {
	case "other_request":
		fault := problem.Fault{Field: "header.Idempotency-Key", Reason: "must not be that of another request", Remedy: "send a new key with each write, and the same key only to repeat it unchanged"}
		return Reply{}, problem.OtherRequest.Says("%s %s: %s.", fault.Field, fault.Reason, fault.Remedy).With(fault)
	case "in_progress":
		return Reply{}, huma.ErrorWithHeaders(
			problem.RequestRunning.Says("The request with this Idempotency-Key is still running. Repeat it to get its answer."), http.Header{"Retry-After": {"1"}})
	default:
		return Reply{Body: written.Answer, replayed: written.Status == "replayed"}, nil
	}
}

// resources are the lists that show which objects exist, by the reason of a refusal.
var resources = map[string]string{
	"unknown_alert": "alerts", "unknown_auth_ref": "credentials", "unknown_channel": "channels", "unknown_chat": "bot/chats", "unknown_rule": "bot/rules", "unknown_rule_version": "bot/rules", "unknown_delivery": "deliveries", "unknown_draft": "drafts",
	"unknown_endpoint": "endpoints", "unknown_group": "groups", "unknown_key": "keys", "unknown_message": "messages", "unknown_quota": "quotas", "unknown_recurrence": "recurrences",
	"unknown_raw": "events", "unknown_submission": "submissions", "unknown_source": "sources", "unknown_target": "alert-targets", "unknown_version": "templates", "unknown_webhook": "webhooks",
}

// missing names the object that does not exist, and the list to look it up.
func missing(reason, subject string) string {
	words := "Nothing was changed: " + strings.ReplaceAll(reason, "_", " ")
	list, ok := resources[reason]
	if !ok {
		return words + "."
	}
	return fmt.Sprintf("%s %s. GET /api/v1/%s lists all.", words, subject, list)
}

// refusalOf returns the problem of a refused change; nil if the change was made or there was nothing to change.
func refusalOf(answer json.RawMessage, subject string) error {
	var a struct {
		Applied *bool           `json:"applied"`
		Reason  string          `json:"reason"`
		Errors  []problem.Fault `json:"errors"`

		Decision     *problem.Decision `json:"decision"`
		Digest       string            `json:"digest"`
		Plan         map[string]any    `json:"plan"`
		SubmissionID string            `json:"submission_id"`
		DeliveryID   string            `json:"delivery_id"`
	}
	if err := json.Unmarshal(answer, &a); err != nil || a.Applied == nil || *a.Applied || a.Reason == "" || a.Reason == "unchanged" {
		return err
	}
	words := strings.ReplaceAll(a.Reason, "_", " ")
	p := problem.Refused.Says("Nothing was changed: %s.", words).With(a.Errors...)
	switch {
	case strings.HasPrefix(a.Reason, "unknown_"):
		p = problem.NotFound.Says("%s", missing(a.Reason, subject))
	case a.Reason == "invalid":
		p = problem.WrongRequest.Says("Nothing was changed: see errors.").With(a.Errors...)
	}
	p.Reason, p.Decision, p.Digest, p.Plan, p.SubmissionID, p.DeliveryID = a.Reason, a.Decision, a.Digest, a.Plan, a.SubmissionID, a.DeliveryID
	switch {
	case a.Reason == "duplicate" && a.SubmissionID != "":
		p.Detail = fmt.Sprintf("Nothing was changed: submission %s has the same event.", a.SubmissionID)
	case a.Reason == "duplicate" && a.DeliveryID != "":
		p.Detail = fmt.Sprintf("Nothing was changed: the channel has this content already, by delivery %s.", a.DeliveryID)
	}
	if a.Decision != nil && p.Status == problem.Refused.Status {
		p.Detail = fmt.Sprintf("Nothing was changed: %s. %s decided %s at %s.", words, a.Decision.By, a.Decision.Decision, a.Decision.At)
	}
	return p
}
