package door

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"autopost/internal/crash"
)

const reasonHeader = "X-Autopost-Reason"

// Once is what a write takes that is to be done once however often it is asked for.
type Once struct {
	IdempotencyKey string `header:"Idempotency-Key" maxLength:"200" example:"6f1c2a52-8a0b-4a51-9d0e-6e1f9a3d2b10" doc:"A fresh random text for each write. The same key with the same request is told the first answer again, for 24 hours; with another request it is refused."`
}

// Act is what a write takes that is recorded in the audit log.
type Act struct {
	Once
	HeaderReason string `header:"X-Autopost-Reason" maxLength:"500" example:"ticket 4711" doc:"Why, for the audit log. Required here or as reason in the body."`
}

// Dry is what an act takes that can be tried.
type Dry struct {
	DryRun bool `query:"dry_run" doc:"Say what would change, and change nothing."`
}

// Reasoned is the reason in a body.
type Reasoned struct {
	Reason string `json:"reason,omitempty" maxLength:"500" example:"ticket 4711" doc:"Why, for the audit log; may stand in X-Autopost-Reason instead."`
}

// Told answers a request that is not to be done: one that was, is being, or cannot be done under its Idempotency-Key. nil: it is
// to be done. For acts whose larger part is outside the database and comes before Do.
func (d *Door) Told(ctx context.Context, once Once) (*Reply, error) {
	if once.IdempotencyKey == "" {
		return nil, nil
	}
	begun, err := d.Look(ctx, "begin_request", "", map[string]any{"key_of_caller": Caller(ctx).KeyID, "once": once.IdempotencyKey, "request_hash": RequestHash(ctx)})
	if err != nil {
		return nil, err
	}
	var written Written
	if err := json.Unmarshal(begun.Body, &written); err != nil || written.Status == "fresh" {
		return nil, err
	}
	reply, err := told(written)
	return &reply, err
}

// Why is the reason of an act, of which inBody is what its body says.
func (a Act) Why(inBody string) (string, error) {
	reason := strings.TrimSpace(cmp.Or(inBody, a.HeaderReason))
	if reason == "" {
		return "", Wrong("reason", "is missing", "send it in the body or as "+reasonHeader+": it is kept in the audit log")
	}
	return reason, nil
}

// Do does an act by hand and answers what became of it. w needs function, arguments, and what the body says of reason and dry run.
func (d *Door) Do(ctx context.Context, act Act, w Write) (Reply, error) {
	var err error
	if w.Reason, err = act.Why(w.Reason); err != nil {
		return Reply{}, err
	}
	reply, err := d.Write(ctx, act.Once, w)
	if err != nil {
		return reply, err
	}
	return reply, refusalOf(reply.Body, w.Args)
}

// Write does something once; its answer is not judged.
func (d *Door) Write(ctx context.Context, once Once, w Write) (Reply, error) {
	caller := Caller(ctx)
	w.Workspace, w.Operator, w.KeyID = caller.WorkspaceID, caller.operator(), caller.KeyID
	w.OnceKey, w.RequestHash = once.IdempotencyKey, cmp.Or(w.RequestHash, RequestHash(ctx))
	written, err := ask(ctx, d, w.Function, func(ctx context.Context) (Written, error) { return d.Records.Write(ctx, w) })
	if err != nil {
		return Reply{}, err
	}
	crash.Here(crash.ActCommitted)
	return told(written)
}

// told is the answer to a write.
func told(written Written) (Reply, error) {
	switch written.Status {
	case "other_request":
		return Reply{}, Wrong("header.Idempotency-Key", "was used for another request", "send a fresh one with each write, and the same one only to repeat it unchanged")
	case "in_progress":
		return Reply{}, huma.ErrorWithHeaders(
			NewProblem(http.StatusConflict, "The request with this Idempotency-Key is being worked on. Ask again for its answer."), http.Header{"Retry-After": {"1"}})
	default:
		return Reply{Body: written.Answer, replayed: written.Status == "replayed"}, nil
	}
}

// listed says where what there is can be read, by the reason that something is not there, and by which arguments it was named.
var listed = map[string]struct {
	at string
	by []string
}{
	"unknown_alert": {"alerts", []string{"id"}}, "unknown_auth_ref": {"credentials", []string{"auth_ref"}}, "unknown_channel": {"channels", []string{"channel_id"}},
	"unknown_delivery": {"deliveries", []string{"delivery_id"}}, "unknown_endpoint": {"endpoints", []string{"id"}}, "unknown_group": {"groups", []string{"platform", "rate_group"}},
	"unknown_key": {"keys", []string{"key_id"}}, "unknown_message": {"messages", []string{"message_id"}}, "unknown_quota": {"quotas", []string{"id"}},
	"unknown_target": {"alert-targets", []string{"id"}}, "unknown_version": {"templates", []string{"template_id", "version"}}, "unknown_webhook": {"webhooks", []string{"id"}},
}

// missing says that what the arguments name is not there, and where to look.
func missing(reason string, args map[string]any) string {
	words := "Nothing was changed: " + strings.ReplaceAll(reason, "_", " ")
	list, ok := listed[reason]
	if !ok {
		return words + "."
	}
	var names []string
	for _, argument := range list.by {
		if name, given := args[argument]; given {
			names = append(names, fmt.Sprint(name))
		}
	}
	return fmt.Sprintf("%s %s. GET /api/v1/%s shows what there is.", words, strings.Join(names, "/"), list.at)
}

// refusalOf is the problem that an act's answer stands for; nil where it was done, or there was nothing to do.
func refusalOf(answer json.RawMessage, args map[string]any) error {
	var a struct {
		Applied *bool   `json:"applied"`
		Reason  string  `json:"reason"`
		Errors  []Fault `json:"errors"`
	}
	if err := json.Unmarshal(answer, &a); err != nil || a.Applied == nil || *a.Applied || a.Reason == "" || a.Reason == "unchanged" {
		return err
	}
	words := strings.ReplaceAll(a.Reason, "_", " ")
	p := NewProblem(http.StatusConflict, "Nothing was changed: "+words+".", a.Errors...)
	switch {
	case strings.HasPrefix(a.Reason, "unknown_"):
		p = NewProblem(http.StatusNotFound, missing(a.Reason, args))
	case a.Reason == "invalid":
		p = NewProblem(http.StatusUnprocessableEntity, "Nothing was changed: see errors.", a.Errors...)
	}
	p.Reason = a.Reason
	return p
}
