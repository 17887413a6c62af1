package api

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"autopost/internal/api/rest"
)

// SubmissionRow is a submission in a list.
type SubmissionRow struct {
	SubmissionID  string         `json:"submission_id" format:"uuid"`
	Kind          string         `json:"kind" enum:"push,pull,api,command,event,file,page" example:"push"`
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
}

type submission struct {
	SubmissionRow
	Payload map[string]any `json:"payload" doc:"The post as it was received."`
	Answer  map[string]any `json:"answer" nullable:"true" doc:"The answer of the enqueue."`
}

type submissionsInput struct {
	rest.Page
	Window
	Status string `query:"status" enum:"new,fetching,pending,skipped,enqueued,rejected,expired,failed" doc:"Only this status."`
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
		return d.Read(ctx, submissions, in.Page, map[string]any{"status": in.Status, "since": in.Since, "until": in.Until})
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
}
