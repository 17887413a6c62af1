package api

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"autopost/internal/api/rest"
)

// SubmissionRow is a submission in a list.
type SubmissionRow struct {
	SubmissionID  string         `json:"submission_id" format:"uuid"`
	Kind          string         `json:"kind" enum:"push,pull,api,command,event,file,page,recurrence" example:"push"`
	EndpointID    string         `json:"endpoint_id" example:"cms"`
	SourceRef     *string        `json:"source_ref" nullable:"true" example:"cms-4711"`
	Status        string         `json:"status" enum:"new,fetching,pending,skipped,enqueued,rejected,expired,failed" example:"fetching"`
	Excerpt       *string        `json:"excerpt" nullable:"true" example:"Hello" doc:"The first 200 characters of the text."`
	Media         int            `json:"media" doc:"How many media."`
	Attempt       int            `json:"attempt" example:"1"`
	NextAttemptAt instant        `json:"next_attempt_at" nullable:"true"`
	LastError     *deliveryError `json:"last_error"`
	RunID         string         `json:"run_id" format:"uuid"`
	MessageID     *string        `json:"message_id" format:"uuid" nullable:"true" doc:"The message that it became."`
	CreatedAt     time.Time      `json:"created_at"`
	UpdatedAt     time.Time      `json:"updated_at"`
	Moderated     bool           `json:"moderated" doc:"A person decides about it."`
	Text          *string        `json:"text" nullable:"true" example:"Hello" doc:"The whole text."`
	Digest        *string        `json:"digest" nullable:"true" doc:"Identifies what a decision is about: texts, media and platforms."`
	ExpiresAt     instant        `json:"expires_at" nullable:"true" doc:"It expires then without a decision."`
	Author        *string        `json:"author" nullable:"true" example:"key:0199c6a0-0000-7000-8000-000000000000" doc:"The person or key that submitted it."`
	Decision      *string        `json:"decision" nullable:"true" example:"approve" doc:"What was decided, approve or reject; null before."`
	DecidedBy     *string        `json:"decided_by" nullable:"true" example:"user:olga" doc:"The person who decided last."`
	DecidedAt     instant        `json:"decided_at" nullable:"true" doc:"The time of the decision."`
	Source        *string        `json:"decision_source" nullable:"true" example:"api" doc:"The way of the decision: api, page, command, telegram, max or file:SOURCE."`
	Reason        *string        `json:"decision_reason" nullable:"true" doc:"Why it was rejected."`
}

type submission struct {
	SubmissionRow
	Payload   map[string]any  `json:"payload" doc:"The post as it was received."`
	Answer    map[string]any  `json:"answer" nullable:"true" doc:"The answer of the enqueue."`
	Plan      *submissionPlan `json:"plan" doc:"What a decision is about."`
	Channels  []string        `json:"channels" nullable:"true" doc:"Only these channels of its message wait; null: all."`
	Needed    int             `json:"needed" doc:"How many people must approve it."`
	Approvals []approval      `json:"approvals" nullable:"false" doc:"All decisions of people about it, oldest first."`
}

// submissionPlan is what a decision is about.
type submissionPlan struct {
	Renderings []rendering      `json:"renderings" nullable:"false" doc:"Each different text."`
	Media      []map[string]any `json:"media" nullable:"false" doc:"The media of the post."`
	_          struct{}         `nullable:"true"`
}

type rendering struct {
	Platform string      `json:"platform" example:"telegram" doc:"The platform of the channels."`
	Verdict  string      `json:"verdict" example:"queued" doc:"What an approval does: queued, failed_permanent or skipped."`
	Text     string      `json:"text" doc:"The text as the platform gets it."`
	Later    []laterText `json:"later,omitempty" nullable:"false" doc:"The further parts of a thread and the first comment, in the order of sending."`
	Reason   string      `json:"reason,omitempty" doc:"Why these channels would not get it."`
	Channels int         `json:"channels" doc:"How many channels get this text."`
	IDs      []string    `json:"channel_ids,omitempty" doc:"The first 10 of these channels."`
	_        struct{}    `additionalProperties:"true"`
}

// laterText is a message after part 1 of a post.
type laterText struct {
	Step  string `json:"step" example:"part-2.text" doc:"The step of the delivery: part-N for part N, or comment."`
	Text  string `json:"text,omitempty" doc:"The text as the platform gets it."`
	Items []int  `json:"items,omitempty" nullable:"false" doc:"Indexes of the media of the post from 0."`
}

type approval struct {
	By       string    `json:"by" example:"user:olga" doc:"The person."`
	Decision string    `json:"decision" enum:"approve,reject" doc:"What the person decided."`
	At       time.Time `json:"at" doc:"The time of the decision."`
	Source   string    `json:"source" example:"api" doc:"The way of the decision."`
	Digest   *string   `json:"digest" nullable:"true" doc:"The plan that it was about."`
	Void     bool      `json:"void" doc:"The post changed after it."`
}

// decided is the answer to a decision.
type decided struct {
	Applied   bool     `json:"applied" doc:"true if the decision was taken."`
	Status    string   `json:"status" example:"enqueued" doc:"The status of the submission."`
	MessageID string   `json:"message_id,omitempty" format:"uuid" doc:"The message that it became."`
	Approvals int      `json:"approvals,omitempty" example:"1" doc:"How many people approved it."`
	Needed    int      `json:"needed,omitempty" example:"1" doc:"How many people must approve it."`
	_         struct{} `additionalProperties:"true"`
}

type decisionInput struct {
	rest.AuditedWrite
	SubmissionID string `path:"submission_id" format:"uuid" doc:"The submission_id in the answer to a push."`
	Body         struct {
		Digest string `json:"digest,omitempty" pattern:"^[0-9a-f]{64}$" doc:"The digest of the plan that the person saw. A changed plan is refused."`
		rest.Reasoned
	}
}

// submissionEditing is the documented body of an edit.
type submissionEditing struct {
	Changes map[string]any `json:"changes" doc:"New values of the fields of the post; null removes a field."`
	rest.Reasoned
}

type submissionEditInput struct {
	rest.AuditedWrite
	rest.Dry
	SubmissionID string `path:"submission_id" format:"uuid" doc:"The submission_id in the answer to a push."`
	Body         edit
}

type submissionsInput struct {
	rest.Page
	Window
	Status  string `query:"status" enum:"new,fetching,pending,skipped,enqueued,rejected,expired,failed" doc:"Only this status."`
	Decided bool   `query:"decided" doc:"Only those that a person decided."`
}

type submissionInput struct {
	SubmissionID string `path:"submission_id" format:"uuid" doc:"The submission_id in the answer to a push."`
}

type submissionActInput struct {
	rest.AuditedWrite
	rest.Dry
	SubmissionID string `path:"submission_id" format:"uuid" doc:"The submission_id in the answer to a push."`
	Body         *rest.Reasoned
}

var submissions = rest.List{Function: "list_submissions", Key: rest.ByID("submission_id")}

func registerSubmissions(d *server) {
	rest.Register(d.Server, rest.Operation{
		ID: "list-submissions", Method: http.MethodGet, Path: "/submissions", Summary: "List submissions, newest first", Answer: rest.Listed[SubmissionRow]{},
		Description: "Posts that wait for their media or a decision, and those that ended before they had deliveries.",
	}, func(ctx context.Context, in *submissionsInput) (rest.Reply, error) {
		filter := map[string]any{"status": in.Status, "since": in.Since, "until": in.Until}
		if in.Decided {
			filter["decided"] = true
		}
		return d.Read(ctx, submissions, in.Page, filter)
	})
	rest.Register(d.Server, rest.Operation{
		ID: "get-submission", Method: http.MethodGet, Path: "/submissions/{submission_id}", Summary: "Get a submission with its post", Answer: submission{},
		Description: "One submission, with the post as it was received.",
	}, func(ctx context.Context, in *submissionInput) (rest.Reply, error) {
		return d.Get(ctx, "This workspace has no such submission.", func(ctx context.Context, workspace string) (json.RawMessage, error) {
			return d.db.GetSubmission(ctx, workspace, in.SubmissionID)
		})
	})
	rest.Register(d.Server, rest.Operation{
		ID: "retry-submission", Method: http.MethodPost, Path: "/submissions/{submission_id}/retry", Summary: "Fetch the media of a submission again", Answer: put{}, Example: reasonExample,
		Description: "A failed submission gets all its attempts back. One that waits for its next attempt is tried at once.",
	}, func(ctx context.Context, in *submissionActInput) (rest.Reply, error) {
		return d.Do(ctx, in.AuditedWrite, rest.Change{Reason: why(in.Body), DryRun: in.DryRun, Subject: in.SubmissionID}, func(ctx context.Context, a rest.OperatorAction) (rest.Written, error) {
			return d.db.RetrySubmission(ctx, a, in.SubmissionID)
		})
	})
	d.registerDecisions()
}

// registerDecisions registers what people do with submissions that wait for them.
func (d *server) registerDecisions() {
	for _, decision := range []string{"approve", "reject"} {
		rest.Register(d.Server, rest.Operation{
			ID: decision + "-submission", Method: http.MethodPost, Path: "/submissions/{submission_id}/" + decision,
			Summary: strings.ToUpper(decision[:1]) + decision[1:] + " a submission", Answer: decided{}, Example: reasonExample,
			Description: "Decides about a post that waits. The first decision wins: a later one is 409 and names it.",
		}, func(ctx context.Context, in *decisionInput) (rest.Reply, error) {
			approval := map[string]any{"source": rest.Caller(ctx).Source(), "digest": nil}
			if in.Body.Digest != "" {
				approval["digest"] = in.Body.Digest
			}
			return d.Do(ctx, in.AuditedWrite, rest.Change{Reason: in.Body.Reason, Subject: in.SubmissionID}, func(ctx context.Context, a rest.OperatorAction) (rest.Written, error) {
				return d.db.DecideSubmission(ctx, a, in.SubmissionID, decision, approval)
			})
		})
	}
	rest.Register(d.Server, rest.Operation{
		ID: "edit-submission", Method: http.MethodPost, Path: "/submissions/{submission_id}/edit", Summary: "Edit a submission", Answer: put{}, Body: submissionEditing{},
		Example:     map[string]any{"changes": map[string]any{"text": "Sale, from Friday on"}, "reason": "typo"},
		Description: "Changes a post that waits for a decision. Approvals given before become void.",
	}, func(ctx context.Context, in *submissionEditInput) (rest.Reply, error) {
		changes, err := in.Body.given()
		if err != nil {
			return rest.Reply{}, err
		}
		return d.Do(ctx, in.AuditedWrite, rest.Change{Reason: in.Body.Reason, DryRun: in.DryRun, Subject: in.SubmissionID}, func(ctx context.Context, a rest.OperatorAction) (rest.Written, error) {
			return d.db.EditSubmission(ctx, a, in.SubmissionID, changes)
		})
	})
}
