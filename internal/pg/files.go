package pg

import (
	"context"
	"encoding/json"
	"fmt"

	"autopost/internal/ingest/filebus"
	"autopost/internal/media"
)

// ListFileSources returns the enabled sources of kind filebus of all workspaces.
func (s *Store) ListFileSources(ctx context.Context) ([]filebus.Source, error) {
	return call[[]filebus.Source](ctx, s, `select * from autopost.list_file_sources()`)
}

// ClaimFileSource leases a source of kind filebus to a run, or renews its lease.
func (s *Store) ClaimFileSource(ctx context.Context, workspace, source, runID string) (filebus.Claim, error) {
	return fileCall[filebus.Claim](ctx, s, "claim file source", source, `select * from autopost.claim_file_source($1, $2, $3)`, workspace, source, runID)
}

// EndFileScan ends the scan of a folder. refused are the paths of the files that it refused.
func (s *Store) EndFileScan(ctx context.Context, workspace, source string, refused []string) error {
	_, err := fileCall[json.RawMessage](ctx, s, "end file scan", source, `select * from autopost.end_file_scan($1, $2, $3)`, workspace, source, append([]string{}, refused...))
	return err
}

// PutPublishJob adds a file job or takes its new content.
func (s *Store) PutPublishJob(ctx context.Context, workspace, source string, payload any) (filebus.Job, error) {
	return fileCall[filebus.Job](ctx, s, "put publish job", source, `select * from autopost.put_publish_job($1, $2, $3)`, workspace, source, payload)
}

// ImportPublishState takes a state file.
func (s *Store) ImportPublishState(ctx context.Context, workspace, source string, state any) (filebus.Job, error) {
	return fileCall[filebus.Job](ctx, s, "import publish state", source, `select * from autopost.import_publish_state($1, $2, $3)`, workspace, source, state)
}

// ReceiveApproval takes an approval file.
func (s *Store) ReceiveApproval(ctx context.Context, workspace, source string, approval any) (filebus.Decision, error) {
	return fileCall[filebus.Decision](ctx, s, "receive approval", source, `select * from autopost.receive_approval($1, $2, $3)`, workspace, source, approval)
}

// StartPublishJob enqueues an approved file job with this digest.
func (s *Store) StartPublishJob(ctx context.Context, workspace, job, platform, digest string) (filebus.Job, error) {
	return fileCall[filebus.Job](ctx, s, "start publish job", job, `select * from autopost.start_publish_job($1, $2, $3, $4)`, workspace, job, platform, digest)
}

// FollowPublishJobs takes the outcomes of deliveries into file jobs, and returns the jobs with work.
func (s *Store) FollowPublishJobs(ctx context.Context, workspace, source string, limit int) ([]filebus.Job, error) {
	return fileCall[[]filebus.Job](ctx, s, "follow publish jobs", source, `select * from autopost.follow_publish_jobs($1, $2, $3)`, workspace, source, limit)
}

// RecordJobFiles records that the files of a job show its row of this time.
func (s *Store) RecordJobFiles(ctx context.Context, workspace, job, platform, updatedAt string) error {
	_, err := fileCall[json.RawMessage](ctx, s, "record job files", job, `select * from autopost.record_job_files($1, $2, $3, $4::timestamptz)`, workspace, job, platform, updatedAt)
	return err
}

// RefuseFile reports a refused file. It returns true at the first time.
func (s *Store) RefuseFile(ctx context.Context, workspace, source string, file any) (bool, error) {
	answer, err := fileCall[struct {
		Applied bool `json:"applied"`
	}](ctx, s, "refuse file", source, `select * from autopost.refuse_file($1, $2, $3)`, workspace, source, file)
	return answer.Applied, err
}

// PutJobArtifact registers an artifact of a file job in the media store.
func (s *Store) PutJobArtifact(ctx context.Context, workspace, source string, origin media.Origin) (media.Registered, error) {
	return fileCall[media.Registered](ctx, s, "put job artifact", source, `select * from autopost.put_job_artifact($1, $2, $3)`, workspace, source, map[string]any{
		"blob_ref": origin.BlobRef, "origin_url": origin.OriginURL, "content_type": origin.ContentType, "size_bytes": origin.SizeBytes, "kind": origin.Kind,
		"width": nullable(origin.Width), "height": nullable(origin.Height),
	})
}

func nullable(pixels int) *int {
	if pixels == 0 {
		return nil
	}
	return &pixels
}

func fileCall[T any](ctx context.Context, s *Store, what, id, sql string, args ...any) (T, error) {
	answer, err := call[T](ctx, s, sql, args...)
	if err != nil {
		return answer, fmt.Errorf("%s %s: %w", what, id, err)
	}
	return answer, nil
}

// GetPublishJob returns a file job as JSON; nil for an unknown one.
func (s *Store) GetPublishJob(ctx context.Context, workspace, job, platform string) (json.RawMessage, error) {
	return s.answerOf(ctx, "get publish job", workspace, `select * from autopost.get_publish_job($1, $2, $3)`, job, platform)
}

// PlanPublishJob returns the dry run of a file job as JSON.
func (s *Store) PlanPublishJob(ctx context.Context, workspace, job, platform string) (json.RawMessage, error) {
	return s.answerOf(ctx, "plan publish job", workspace, `select * from autopost.plan_publish_job($1, $2, $3)`, job, platform)
}

// DecidePublishJob approves or rejects a file job.
func (s *Store) DecidePublishJob(ctx context.Context, a OperatorAction, job, platform, decision string, approval any) (Written, error) {
	return s.write(ctx, a, `autopost.decide_publish_job(@workspace, @job, @platform, @decision, @approval, @operator, @reason)`,
		args{"job": job, "platform": platform, "decision": decision, "approval": approval})
}

// PreparePublishJob makes the payload of an approved file job.
func (s *Store) PreparePublishJob(ctx context.Context, a OperatorAction, source, job, platform string, fields any) (Written, error) {
	return s.write(ctx, a, `autopost.prepare_publish_job(@workspace, @source, @job, @platform, @fields, @operator, @reason, @dry_run)`,
		args{"source": source, "job": job, "platform": platform, "fields": fields})
}

var _ filebus.Store = (*Store)(nil)
