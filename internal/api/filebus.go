package api

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"autopost/internal/api/rest"
)

// publishJobRow is a file job in a list.
type publishJobRow struct {
	JobID          string         `json:"job_id" example:"demo-dance-loop-v1" doc:"The name of the job: its folder."`
	Platform       string         `json:"platform" example:"youtube" doc:"The platform on which it is published."`
	SourceID       string         `json:"source_id" example:"files" doc:"The source whose folder has the job."`
	Status         string         `json:"status" enum:"waiting,approved,publishing,published,rejected,failed,unknown" example:"waiting"`
	Title          *string        `json:"title" nullable:"true" example:"Cat vibing" doc:"The title in its payload."`
	PayloadDigest  *string        `json:"payload_digest" nullable:"true" doc:"SHA-256 of the payload file."`
	Digest         *string        `json:"digest" nullable:"true" doc:"Identifies what an approval is about: payload and artifacts; null while artifacts are missing."`
	Error          map[string]any `json:"error" nullable:"true" doc:"Why it waits, failed or is unknown."`
	SubmissionID   *string        `json:"submission_id" format:"uuid" nullable:"true" doc:"The submission that it became."`
	DeliveryID     *string        `json:"delivery_id" format:"uuid" nullable:"true" doc:"Its delivery."`
	PlatformPostID *string        `json:"platform_post_id" nullable:"true" doc:"The platform's id of the post."`
	PostURL        *string        `json:"post_url" nullable:"true" doc:"The public address of the post."`
	PublishedAt    instant        `json:"published_at" nullable:"true" doc:"The time of publication."`
	Imported       bool           `json:"imported" doc:"Published by something else: its state file says so."`
	CreatedAt      time.Time      `json:"created_at"`
	UpdatedAt      time.Time      `json:"updated_at"`
}

// publishJob is a file job with its content and decisions.
type publishJob struct {
	JobID     string           `json:"job_id" example:"demo-dance-loop-v1" doc:"The name of the job: its folder."`
	Platform  string           `json:"platform" example:"youtube" doc:"The platform on which it is published."`
	Status    string           `json:"status" example:"waiting" doc:"Its status; unseen if only a decision is known."`
	Payload   map[string]any   `json:"payload" nullable:"true" doc:"The payload file."`
	Artifacts map[string]any   `json:"artifacts" doc:"The files that were copied into the media store, by name."`
	Needed    int              `json:"needed" doc:"How many people must approve it."`
	Approvals []map[string]any `json:"approvals" nullable:"false" doc:"All decisions about it, oldest first."`
	Now       map[string]any   `json:"now" doc:"What it waits for, and what helps."`
	_         struct{}         `additionalProperties:"true"`
}

type publishJobsInput struct {
	rest.Page
	Status   string `query:"status" enum:"waiting,approved,publishing,published,rejected,failed,unknown" doc:"Only this status."`
	JobID    string `query:"job_id" maxLength:"128" doc:"Only this job."`
	Platform string `query:"platform" maxLength:"32" doc:"Only this platform."`
	SourceID string `query:"source_id" maxLength:"200" doc:"Only this source."`
}

type jobDecisionInput struct {
	rest.AuditedWrite
	JobID    string `path:"job_id" maxLength:"128" doc:"The name of the job."`
	Platform string `path:"platform" maxLength:"32" doc:"The platform of the job."`
	Body     struct {
		Digest string `json:"digest,omitempty" pattern:"^[0-9a-f]{64}$" doc:"The digest of the job that the person saw. A changed job is refused."`
		rest.Reasoned
	}
}

type jobPrepareInput struct {
	rest.AuditedWrite
	rest.Dry
	JobID    string `path:"job_id" maxLength:"128" doc:"The name of the job."`
	Platform string `path:"platform" maxLength:"32" doc:"The platform of the job."`
	Body     struct {
		SourceID  string         `json:"source_id,omitempty" maxLength:"200" doc:"The source of the job; by default the only one of kind filebus."`
		Config    map[string]any `json:"publish_config" doc:"Title, description, tags, privacy, and the further fields of the platform's variant."`
		Artifacts map[string]any `json:"artifact_pointers" doc:"The paths of video, subtitles and thumbnail, relative to the folder of the payload."`
		Lineage   map[string]any `json:"lineage,omitempty" doc:"Where the job comes from."`
		rest.Reasoned
	}
}

type jobInput struct {
	JobID    string `path:"job_id" maxLength:"128" doc:"The name of the job."`
	Platform string `path:"platform" maxLength:"32" doc:"The platform of the job."`
}

var publishJobs = rest.List{Function: "list_publish_jobs", Key: []rest.Column{
	{Name: "job_id", Filter: "after_job", Valid: rest.ValidText}, {Name: "platform", Filter: "after_platform", Valid: rest.ValidText},
}}

func registerFilebus(d *server) {
	rest.Register(d.Server, rest.Operation{
		ID: "list-publish-jobs", Method: http.MethodGet, Path: "/filebus/jobs", Summary: "List file jobs", Answer: rest.Listed[publishJobRow]{},
		Description: "The jobs that folders bring, by name.",
	}, func(ctx context.Context, in *publishJobsInput) (rest.Reply, error) {
		return d.Read(ctx, publishJobs, in.Page, map[string]any{"status": in.Status, "job_id": in.JobID, "platform": in.Platform, "source_id": in.SourceID})
	})
	rest.Register(d.Server, rest.Operation{
		ID: "get-publish-job", Method: http.MethodGet, Path: "/filebus/jobs/{job_id}/{platform}", Summary: "Get a file job", Answer: publishJob{},
		Description: "One file job with its content, its decisions and what it waits for.",
	}, func(ctx context.Context, in *jobInput) (rest.Reply, error) {
		return d.Get(ctx, "This workspace has no such file job.", func(ctx context.Context, workspace string) (json.RawMessage, error) {
			return d.db.GetPublishJob(ctx, workspace, in.JobID, in.Platform)
		})
	})
	for _, decision := range []string{"approve", "reject"} {
		rest.Register(d.Server, rest.Operation{
			ID: decision + "-publish-job", Method: http.MethodPost, Path: "/filebus/jobs/{job_id}/{platform}/" + decision,
			Summary: strings.ToUpper(decision[:1]) + decision[1:] + " a file job", Answer: decided{}, Example: reasonExample,
			Description: "Decides about a file job. A decision that comes before the job waits for it. After a rejection only new content opens the job.",
		}, func(ctx context.Context, in *jobDecisionInput) (rest.Reply, error) {
			approval := map[string]any{"source": rest.Caller(ctx).Source()}
			if in.Body.Digest != "" {
				approval["digest"] = in.Body.Digest
			}
			return d.Do(ctx, in.AuditedWrite, rest.Change{Reason: in.Body.Reason, Subject: in.JobID}, func(ctx context.Context, a rest.OperatorAction) (rest.Written, error) {
				return d.db.DecidePublishJob(ctx, a, in.JobID, in.Platform, decision, approval)
			})
		})
	}
	rest.Register(d.Server, rest.Operation{
		ID: "prepare-publish-job", Method: http.MethodPost, Path: "/filebus/jobs/{job_id}/{platform}/prepare", Summary: "Write the payload of an approved file job", Answer: put{},
		Example:     map[string]any{"publish_config": map[string]any{"title": "Cat vibing"}, "artifact_pointers": map[string]any{"video": "../../output/demo/final.mp4"}, "reason": "approved"},
		Description: "Makes the payload of a job that was approved before it had one. A daemon that sees the folder writes the file.",
	}, func(ctx context.Context, in *jobPrepareInput) (rest.Reply, error) {
		fields := map[string]any{"publish_config": in.Body.Config, "artifact_pointers": in.Body.Artifacts}
		if in.Body.Lineage != nil {
			fields["lineage"] = in.Body.Lineage
		}
		return d.Do(ctx, in.AuditedWrite, rest.Change{Reason: in.Body.Reason, DryRun: in.DryRun, Subject: in.JobID}, func(ctx context.Context, a rest.OperatorAction) (rest.Written, error) {
			return d.db.PreparePublishJob(ctx, a, in.Body.SourceID, in.JobID, in.Platform, fields)
		})
	})
}
