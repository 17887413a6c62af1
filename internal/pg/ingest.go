package pg

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"autopost"
	"autopost/internal/ingest"
	"autopost/internal/ingest/botupdates"
	"autopost/internal/ingest/push"
	"autopost/internal/media"
)

// ResolveEndpoint returns the enabled endpoint with this SHA-256 of its secret; nil if there is none.
func (s *Store) ResolveEndpoint(ctx context.Context, kind, secretHash string) (*push.Endpoint, error) {
	endpoint, err := call[*push.Endpoint](ctx, s, `select * from autopost.resolve_endpoint($1, $2)`, kind, secretHash)
	if err != nil {
		return nil, fmt.Errorf("resolve endpoint: %w", err)
	}
	return endpoint, nil
}

// ResolveBotEndpoint is ResolveEndpoint for the endpoint of a bot.
func (s *Store) ResolveBotEndpoint(ctx context.Context, secretHash string) (*botupdates.Endpoint, error) {
	endpoint, err := call[*botupdates.Endpoint](ctx, s, `select * from autopost.resolve_endpoint('bot_webhook', $1)`, secretHash)
	if err != nil {
		return nil, fmt.Errorf("resolve endpoint of a bot: %w", err)
	}
	return endpoint, nil
}

// GuardIngress counts a request and checks its size and rate.
func (s *Store) GuardIngress(ctx context.Context, workspace, endpoint string, bytes, items int) (push.Verdict, error) {
	a, err := call[struct {
		Admitted     bool
		Reason       string
		RetryAfterMS float64 `json:"retry_after_ms"`
		IngressRPS   float64 `json:"ingress_rps"`
		Left         int
		ResetMS      float64 `json:"reset_ms"`
	}](ctx, s, `select * from autopost.guard_ingress($1, $2, $3, $4)`, workspace, endpoint, bytes, items)
	if err != nil {
		return push.Verdict{}, fmt.Errorf("guard ingress endpoint=%s: %w", endpoint, err)
	}
	return push.Verdict{
		Admitted: a.Admitted, Reason: a.Reason, RetryAfter: milliseconds(a.RetryAfterMS),
		Quota: push.QuotaOf(a.IngressRPS, a.Left, milliseconds(a.ResetMS)),
	}, nil
}

func milliseconds(n float64) time.Duration { return time.Duration(n * float64(time.Millisecond)) }

// ReceivePush stores an array of posts in one transaction.
func (s *Store) ReceivePush(ctx context.Context, workspace, endpoint string, items json.RawMessage) (json.RawMessage, error) {
	a, err := call[json.RawMessage](ctx, s, `select * from autopost.receive_push($1, $2, $3)`, workspace, endpoint, items)
	if err != nil {
		return nil, fmt.Errorf("receive push endpoint=%s: %w", endpoint, err)
	}
	return a, nil
}

// ReceiveEvent stores one domain event.
func (s *Store) ReceiveEvent(ctx context.Context, workspace, endpoint string, event json.RawMessage) (json.RawMessage, error) {
	a, err := call[json.RawMessage](ctx, s, `select * from autopost.receive_event($1, $2, $3)`, workspace, endpoint, event)
	if err != nil {
		return nil, fmt.Errorf("receive event endpoint=%s: %w", endpoint, err)
	}
	return a, nil
}

// ResolveSignedEndpoint returns the enabled endpoint for signed requests with this name; nil if there is none.
func (s *Store) ResolveSignedEndpoint(ctx context.Context, signedAt time.Time, workspace, endpoint string) (*push.SignedEndpoint, error) {
	e, err := call[*push.SignedEndpoint](ctx, s, `select * from autopost.resolve_signed_endpoint($1, $2, $3)`, signedAt, workspace, endpoint)
	if err != nil {
		return nil, fmt.Errorf("resolve signed endpoint: %w", err)
	}
	return e, nil
}

// ReceiveSignedPush stores an array of posts in one transaction, once per webhook id.
func (s *Store) ReceiveSignedPush(ctx context.Context, workspace, endpoint, webhookID string, items json.RawMessage) (json.RawMessage, error) {
	a, err := call[json.RawMessage](ctx, s, `select * from autopost.receive_signed_push($1, $2, $3, $4)`, workspace, endpoint, webhookID, items)
	if err != nil {
		return nil, fmt.Errorf("receive signed push endpoint=%s: %w", endpoint, err)
	}
	return a, nil
}

// ReceiveUpdate stores one update of a bot once and applies its effects.
func (s *Store) ReceiveUpdate(ctx context.Context, workspace, endpoint string, update json.RawMessage) (botupdates.Taken, error) {
	a, err := call[botupdates.Taken](ctx, s, `select * from autopost.receive_update($1, $2, $3)`, workspace, endpoint, update)
	if err != nil {
		return botupdates.Taken{}, fmt.Errorf("receive update endpoint=%s: %w", endpoint, err)
	}
	return a, nil
}

// SubmitPost stores one post of kind api, command or page. The endpoint "" means the only enabled one. The operator is
// its author.
func (s *Store) SubmitPost(ctx context.Context, a OperatorAction, endpoint, kind string, post json.RawMessage) (Written, error) {
	return s.write(ctx, a, `autopost.submit_post(@workspace, nullif(@endpoint, ''), @kind, @post, nullif(@operator, ''))`, args{"endpoint": endpoint, "kind": kind, "post": post})
}

// ReadySubmissionWorkspaces returns workspaces with a submission that may be claimed now.
func (s *Store) ReadySubmissionWorkspaces(ctx context.Context, limit int) ([]string, error) {
	return s.texts(ctx, `select * from autopost.ready_submission_workspaces($1)`, limit)
}

// ClaimSubmissions leases submissions to a run.
func (s *Store) ClaimSubmissions(ctx context.Context, workspace, runID string, limit int) ([]ingest.Submission, error) {
	rows, err := s.calls.Query(ctx, `select workspace_id, submission_id, claim_token, attempt, lease_until, raw_payload from autopost.claim_submissions($1, $2, $3)`,
		workspace, runID, limit)
	if err != nil {
		return nil, fmt.Errorf("claim submissions ws=%s: %w", workspace, translate(err))
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[ingest.Submission])
	if err != nil {
		return nil, fmt.Errorf("claim submissions ws=%s: %w", workspace, translate(err))
	}
	return list, nil
}

// CommitSubmission commits the outcome of a submission.
func (s *Store) CommitSubmission(ctx context.Context, workspace, submissionID, claimToken string, outcome json.RawMessage) (json.RawMessage, error) {
	a, err := call[json.RawMessage](ctx, s, `select * from autopost.commit_submission($1, $2, $3, $4)`, workspace, submissionID, claimToken, outcome)
	if err != nil {
		return nil, fmt.Errorf("commit submission %s: %w", submissionID, err)
	}
	return a, nil
}

// ReadyFanoutWorkspaces returns workspaces with a fan-out job that may run now.
func (s *Store) ReadyFanoutWorkspaces(ctx context.Context, limit int) ([]string, error) {
	return s.texts(ctx, `select * from autopost.ready_fanout_workspaces($1)`, limit)
}

// RunFanout processes a range of the oldest fan-out job of a workspace.
func (s *Store) RunFanout(ctx context.Context, workspace string, limit int) (ingest.Fanout, error) {
	a, err := call[ingest.Fanout](ctx, s, `select * from autopost.run_fanout($1, $2)`, workspace, limit)
	if err != nil {
		return ingest.Fanout{}, fmt.Errorf("run fanout ws=%s: %w", workspace, err)
	}
	return a, nil
}

// ExtendSubmission renews the lease of a submission; held is false if the token is stale.
func (s *Store) ExtendSubmission(ctx context.Context, workspace, submissionID, claimToken string) (held bool, err error) {
	a, err := call[struct{ Applied bool }](ctx, s, `select * from autopost.extend_submission($1, $2, $3)`, workspace, submissionID, claimToken)
	if err != nil {
		return false, fmt.Errorf("extend submission %s: %w", submissionID, err)
	}
	return a.Applied, nil
}

// PutMediaOrigin registers a stored medium for a workspace.
func (s *Store) PutMediaOrigin(ctx context.Context, workspace string, o media.Origin) (media.Registered, error) {
	return Decode[media.Registered](s.write(ctx, OperatorAction{Workspace: workspace}, putMediaOrigin, originArgs(o)))
}

// PutUpload is PutMediaOrigin for a request of the API. The answer also has the fields of shown.
func (s *Store) PutUpload(ctx context.Context, a OperatorAction, o media.Origin, shown any) (Written, error) {
	given := originArgs(o)
	given["shown"] = shown
	return s.write(ctx, a, putMediaOrigin, given)
}

const putMediaOrigin = `autopost.put_media_origin(@workspace, @blob_ref, @origin_url, @content_type, @size_bytes, @kind, @width, @height)`

func originArgs(o media.Origin) args {
	return args{
		"blob_ref": o.BlobRef, "origin_url": o.OriginURL, "content_type": o.ContentType, "size_bytes": o.SizeBytes,
		"kind": string(o.Kind), "width": o.Width, "height": o.Height,
	}
}

// GetMediaOrigin reports whether a medium is registered for the workspace.
func (s *Store) GetMediaOrigin(ctx context.Context, workspace, blobRef string) (held bool, err error) {
	a, err := call[*json.RawMessage](ctx, s, `select * from autopost.get_media_origin($1, $2)`, workspace, blobRef)
	if err != nil {
		return false, fmt.Errorf("get media origin %s: %w", blobRef, err)
	}
	return a != nil, nil
}

// GetMediaBlob returns the platform's id of a medium; nil if no valid one is known.
func (s *Store) GetMediaBlob(ctx context.Context, k media.BlobKey) (*media.Blob, error) {
	blob, err := call[*media.Blob](ctx, s, `select * from autopost.get_media_blob($1, $2, $3, $4, $5)`, k.Workspace, k.BlobRef, k.Provider, k.AuthRef, k.Kind)
	if err != nil {
		return nil, fmt.Errorf("get media blob %s: %w", k.BlobRef, err)
	}
	return blob, nil
}

// PutMediaBlob stores the platform's id of a medium. A blob without FileID removes it.
func (s *Store) PutMediaBlob(ctx context.Context, k media.BlobKey, blob media.Blob) error {
	var expires *time.Time
	if !blob.ExpiresAt.IsZero() {
		expires = &blob.ExpiresAt
	}
	_, err := call[json.RawMessage](ctx, s, `select * from autopost.put_media_blob($1, $2, $3, $4, $5, nullif($6, ''), $7)`,
		k.Workspace, k.BlobRef, k.Provider, k.AuthRef, k.Kind, blob.FileID, expires)
	if err != nil {
		return fmt.Errorf("put media blob %s: %w", k.BlobRef, err)
	}
	return nil
}

// UploadToken is the platform's id of an uploaded medium.
type UploadToken struct {
	Applied bool `json:"applied"`
	// Reason is "unknown_upload" if the id is unknown or expired.
	Reason string `json:"reason,omitempty"`
	FileID string `json:"file_id"`
	// Kind is the kind of the medium in the terms of the platform.
	Kind string `json:"kind"`
	// ExpiresAt is nil if unknown.
	ExpiresAt *time.Time `json:"expires_at"`
}

// RecordUpload records the upload of a medium to a platform with its cost and returns the platform's id. It uses the
// workspace of a.
func (s *Store) RecordUpload(ctx context.Context, a OperatorAction, k media.BlobKey, used autopost.Used) (Written, error) {
	return s.write(ctx, a, `autopost.record_upload(@workspace, @platform, @auth_ref, @blob_ref, @kind, @used, @operator, @reason)`, args{"platform": k.Provider, "auth_ref": k.AuthRef, "blob_ref": k.BlobRef, "kind": k.Kind, "used": used})
}

var (
	_ push.EventStore  = (*Store)(nil)
	_ botupdates.Store = (*Store)(nil)
	_ ingest.Store     = (*Store)(nil)
	_ media.Rows       = (*Store)(nil)
	_ media.Blobs      = (*Store)(nil)
)
