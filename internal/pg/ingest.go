package pg

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Endpoint is what resolve_endpoint answers.
type Endpoint struct {
	WorkspaceID     string `json:"workspace_id"`
	EndpointID      string `json:"endpoint_id"`
	MaxPayloadBytes int    `json:"max_payload_bytes"`
}

// ResolveEndpoint finds the enabled endpoint of a secret's SHA-256; nil when there is none.
func (s *Store) ResolveEndpoint(ctx context.Context, kind, secretHash string) (*Endpoint, error) {
	endpoint, err := call[*Endpoint](ctx, s, `select * from autopost.resolve_endpoint($1, $2)`, kind, secretHash)
	if err != nil {
		return nil, fmt.Errorf("resolve endpoint: %w", err)
	}
	return endpoint, nil
}

// BotEndpoint is what resolve_endpoint answers of an endpoint that takes a bot's updates.
type BotEndpoint struct {
	Endpoint

	// Platform is whose bot it is.
	Platform string `json:"platform"`
}

// ResolveBotEndpoint finds the enabled endpoint of a bot by a secret's SHA-256, as ResolveEndpoint does; nil when there is none.
func (s *Store) ResolveBotEndpoint(ctx context.Context, secretHash string) (*BotEndpoint, error) {
	endpoint, err := call[*BotEndpoint](ctx, s, `select * from autopost.resolve_endpoint('bot_webhook', $1)`, secretHash)
	if err != nil {
		return nil, fmt.Errorf("resolve endpoint of a bot: %w", err)
	}
	return endpoint, nil
}

// Verdict is what guard_ingress answers.
type Verdict struct {
	Admitted   bool
	Reason     string
	RetryAfter time.Duration
}

// GuardIngress judges a request by size and rate before it is worked on.
func (s *Store) GuardIngress(ctx context.Context, workspace, endpoint string, bytes, items int) (Verdict, error) {
	a, err := call[struct {
		Admitted     bool
		Reason       string
		RetryAfterMS float64 `json:"retry_after_ms"`
	}](ctx, s, `select * from autopost.guard_ingress($1, $2, $3, $4)`, workspace, endpoint, bytes, items)
	if err != nil {
		return Verdict{}, fmt.Errorf("guard ingress endpoint=%s: %w", endpoint, err)
	}
	return Verdict{Admitted: a.Admitted, Reason: a.Reason, RetryAfter: time.Duration(a.RetryAfterMS * float64(time.Millisecond))}, nil
}

// ReceivePush takes an array of posts in one transaction.
func (s *Store) ReceivePush(ctx context.Context, workspace, endpoint string, items json.RawMessage) (json.RawMessage, error) {
	a, err := call[json.RawMessage](ctx, s, `select * from autopost.receive_push($1, $2, $3)`, workspace, endpoint, items)
	if err != nil {
		return nil, fmt.Errorf("receive push endpoint=%s: %w", endpoint, err)
	}
	return a, nil
}

// SignedEndpoint is what resolve_signed_endpoint answers.
type SignedEndpoint struct {
	WorkspaceID     string `json:"workspace_id"`
	EndpointID      string `json:"endpoint_id"`
	MaxPayloadBytes int    `json:"max_payload_bytes"`
	// AuthRefs name the keys that are good now, the newest first.
	AuthRefs []string `json:"auth_refs"`
	// SkewSeconds is how far the database's clock is past the instant asked about.
	SkewSeconds      int64 `json:"skew_seconds"`
	ToleranceSeconds int64 `json:"tolerance_seconds"`
	Fresh            bool  `json:"fresh"`
}

// ResolveSignedEndpoint finds the enabled endpoint of a name that takes signed requests; nil when there is none.
func (s *Store) ResolveSignedEndpoint(ctx context.Context, signedAt time.Time, workspace, endpoint string) (*SignedEndpoint, error) {
	e, err := call[*SignedEndpoint](ctx, s, `select * from autopost.resolve_signed_endpoint($1, $2, $3)`, signedAt, workspace, endpoint)
	if err != nil {
		return nil, fmt.Errorf("resolve signed endpoint: %w", err)
	}
	return e, nil
}

// ReceiveSignedPush takes an array of posts in one transaction, once for each id that was signed with them.
func (s *Store) ReceiveSignedPush(ctx context.Context, workspace, endpoint, webhookID string, items json.RawMessage) (json.RawMessage, error) {
	a, err := call[json.RawMessage](ctx, s, `select * from autopost.receive_signed_push($1, $2, $3, $4)`, workspace, endpoint, webhookID, items)
	if err != nil {
		return nil, fmt.Errorf("receive signed push endpoint=%s: %w", endpoint, err)
	}
	return a, nil
}

// Update is what receive_update answers.
type Update struct {
	// Status is "stored" or "duplicate", Kind the platform's name of its type.
	Status, Kind string
	// Rights is "lost" or "regained" where channels paused or went on; else "".
	Rights string
}

// ReceiveUpdate takes one update of a bot, once, and does what follows from it.
func (s *Store) ReceiveUpdate(ctx context.Context, workspace, endpoint string, update json.RawMessage) (Update, error) {
	a, err := call[Update](ctx, s, `select * from autopost.receive_update($1, $2, $3)`, workspace, endpoint, update)
	if err != nil {
		return Update{}, fmt.Errorf("receive update endpoint=%s: %w", endpoint, err)
	}
	return a, nil
}

// SubmitPost takes one post by kind api, command or page; an empty endpoint is the only one there is.
func (s *Store) SubmitPost(ctx context.Context, workspace, endpoint, kind string, post json.RawMessage) (json.RawMessage, error) {
	a, err := call[json.RawMessage](ctx, s, `select * from autopost.submit_post($1, nullif($2, ''), $3, $4)`, workspace, endpoint, kind, post)
	if err != nil {
		return nil, fmt.Errorf("submit post ws=%s: %w", workspace, err)
	}
	return a, nil
}

// Submission is a row of claimed_submission.
type Submission struct {
	WorkspaceID  string
	SubmissionID string
	ClaimToken   string
	Attempt      int
	LeaseUntil   time.Time
	RawPayload   json.RawMessage
}

// ReadySubmissionWorkspaces names workspaces with a submission that could be taken now.
func (s *Store) ReadySubmissionWorkspaces(ctx context.Context, limit int) ([]string, error) {
	return s.texts(ctx, `select * from autopost.ready_submission_workspaces($1)`, limit)
}

// ClaimSubmissions leases submissions to a run.
func (s *Store) ClaimSubmissions(ctx context.Context, workspace, runID string, limit int) ([]Submission, error) {
	rows, err := s.pool.Query(ctx, `select workspace_id, submission_id, claim_token, attempt, lease_until, raw_payload from autopost.claim_submissions($1, $2, $3)`,
		workspace, runID, limit)
	if err != nil {
		return nil, fmt.Errorf("claim submissions ws=%s: %w", workspace, translate(err))
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Submission])
	if err != nil {
		return nil, fmt.Errorf("claim submissions ws=%s: %w", workspace, translate(err))
	}
	return list, nil
}

// CommitSubmission settles a submission.
func (s *Store) CommitSubmission(ctx context.Context, workspace, submissionID, claimToken string, outcome json.RawMessage) (json.RawMessage, error) {
	a, err := call[json.RawMessage](ctx, s, `select * from autopost.commit_submission($1, $2, $3, $4)`, workspace, submissionID, claimToken, outcome)
	if err != nil {
		return nil, fmt.Errorf("commit submission %s: %w", submissionID, err)
	}
	return a, nil
}

// Fanout is what run_fanout answers.
type Fanout struct {
	Status                                       string
	JobID                                        string `json:"job_id"`
	Planned, Enqueued, Deduped, Invalid, Skipped int
	Error                                        json.RawMessage
}

// ReadyFanoutWorkspaces names workspaces with a fan-out that could be worked on now.
func (s *Store) ReadyFanoutWorkspaces(ctx context.Context, limit int) ([]string, error) {
	return s.texts(ctx, `select * from autopost.ready_fanout_workspaces($1)`, limit)
}

// RunFanout works off a range of the workspace's oldest fan-out job.
func (s *Store) RunFanout(ctx context.Context, workspace string, limit int) (Fanout, error) {
	a, err := call[Fanout](ctx, s, `select * from autopost.run_fanout($1, $2)`, workspace, limit)
	if err != nil {
		return Fanout{}, fmt.Errorf("run fanout ws=%s: %w", workspace, err)
	}
	return a, nil
}

// MediaOrigin is what put_media_origin takes.
type MediaOrigin struct {
	BlobRef, OriginURL, ContentType, Kind string
	SizeBytes                             int64
	Width, Height                         int
}

// ExtendSubmission renews a submission's lease; held is false when it is another's by now.
func (s *Store) ExtendSubmission(ctx context.Context, workspace, submissionID, claimToken string) (held bool, err error) {
	a, err := call[struct{ Applied bool }](ctx, s, `select * from autopost.extend_submission($1, $2, $3)`, workspace, submissionID, claimToken)
	if err != nil {
		return false, fmt.Errorf("extend submission %s: %w", submissionID, err)
	}
	return a.Applied, nil
}

// MediaAnswer is what put_media_origin says.
type MediaAnswer struct {
	Applied bool
	// Reason is "too_large" or "being_removed" when it was not applied.
	Reason string
	// Limit is the largest size in bytes, when that is the reason.
	Limit int64
}

// PutMediaOrigin registers content that stands in the origin.
func (s *Store) PutMediaOrigin(ctx context.Context, workspace string, o MediaOrigin) (MediaAnswer, error) {
	a, err := call[MediaAnswer](ctx, s, `select * from autopost.put_media_origin($1, $2, $3, $4, $5, $6, $7, $8)`,
		workspace, o.BlobRef, o.OriginURL, o.ContentType, o.SizeBytes, o.Kind, o.Width, o.Height)
	if err != nil {
		return MediaAnswer{}, fmt.Errorf("put media origin %s: %w", o.BlobRef, err)
	}
	return a, nil
}

// GetMediaOrigin reports whether the workspace holds content.
func (s *Store) GetMediaOrigin(ctx context.Context, workspace, blobRef string) (held bool, err error) {
	a, err := call[*json.RawMessage](ctx, s, `select * from autopost.get_media_origin($1, $2)`, workspace, blobRef)
	if err != nil {
		return false, fmt.Errorf("get media origin %s: %w", blobRef, err)
	}
	return a != nil, nil
}

// BlobKey names what one credential of a platform calls a content.
type BlobKey struct {
	Workspace, BlobRef, Provider, AuthRef, Kind string
}

// GetMediaBlob returns the platform's id, "" when there is none still valid, and when it expires (zero: until refused).
func (s *Store) GetMediaBlob(ctx context.Context, k BlobKey) (fileID string, expiresAt time.Time, err error) {
	a, err := call[*struct {
		FileID    string     `json:"file_id"`
		ExpiresAt *time.Time `json:"expires_at"`
	}](ctx, s, `select * from autopost.get_media_blob($1, $2, $3, $4, $5)`, k.Workspace, k.BlobRef, k.Provider, k.AuthRef, k.Kind)
	if err != nil {
		return "", time.Time{}, fmt.Errorf("get media blob %s: %w", k.BlobRef, err)
	}
	if a == nil {
		return "", time.Time{}, nil
	}
	if a.ExpiresAt != nil {
		expiresAt = *a.ExpiresAt
	}
	return a.FileID, expiresAt, nil
}

// PutMediaBlob keeps the platform's id; "" forgets it.
func (s *Store) PutMediaBlob(ctx context.Context, k BlobKey, fileID string, expiresAt time.Time) error {
	var id *string
	if fileID != "" {
		id = &fileID
	}
	var expires *time.Time
	if !expiresAt.IsZero() {
		expires = &expiresAt
	}
	_, err := call[json.RawMessage](ctx, s, `select * from autopost.put_media_blob($1, $2, $3, $4, $5, $6, $7)`,
		k.Workspace, k.BlobRef, k.Provider, k.AuthRef, k.Kind, id, expires)
	if err != nil {
		return fmt.Errorf("put media blob %s: %w", k.BlobRef, err)
	}
	return nil
}
