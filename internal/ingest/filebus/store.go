package filebus

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"autopost"
	"autopost/internal/ingest/pull"
	"autopost/internal/media"
)

// Source is a folder that has jobs.
type Source struct {
	WorkspaceID string `json:"workspace_id"`
	SourceID    string `json:"source_id"`
	// Root is the absolute path of the folder.
	Root string `json:"root"`
	// Due means that the database has work for the source.
	Due bool `json:"due"`
}

func (s Source) key() string { return s.WorkspaceID + "\x00" + s.SourceID }

// Claim is the answer to a claim of a source.
type Claim struct {
	Applied bool `json:"applied"`
	// Reason is leased or disabled if it was not claimed.
	Reason     string  `json:"reason"`
	Options    Options `json:"config_json"`
	EndpointID *string `json:"endpoint_id"`
}

// Options are config_json of a source.
type Options struct {
	Root     string `json:"root"`
	DistDir  string `json:"dist_dir"`
	InboxDir string `json:"inbox_dir"`
	// MaxBytes is the largest artifact; 16 GiB by default.
	MaxBytes      int64  `json:"max_bytes"`
	ApprovalRef   string `json:"approval_ref"`
	RequireSigned bool   `json:"require_signed_approvals"`
}

// Artifact is a file of a job in the media store.
type Artifact struct {
	Path    string `json:"path"`
	BlobRef string `json:"blob_ref"`
	Size    int64  `json:"size"`
	// Modified is the time of the file in nanoseconds since 1970, as text.
	Modified string `json:"modified"`
}

// Job is a job as the database returns it.
type Job struct {
	Applied       bool                `json:"applied"`
	Reason        string              `json:"reason"`
	JobID         string              `json:"job_id"`
	Platform      string              `json:"platform"`
	Status        string              `json:"status"`
	Digest        string              `json:"digest"`
	PayloadDigest string              `json:"payload_digest"`
	Artifacts     map[string]Artifact `json:"artifacts"`
	// Complete means that all artifacts are in the media store.
	Complete bool `json:"complete"`
	// Doubt is set for an unreadable state file.
	Doubt *Doubt `json:"doubt"`
	// Prepared is a payload to write; nil if there is none.
	Prepared  json.RawMessage `json:"prepared"`
	UpdatedAt string          `json:"updated_at"`
	FilesAt   string          `json:"files_at"`
	// File is the content of the state file of a published job, else of its status file.
	File json.RawMessage `json:"file"`
}

// Doubt describes an unreadable state file.
type Doubt struct {
	Digest string `json:"digest"`
	Reason string `json:"reason"`
	// Asked is "absent" if the platform was asked and does not have the post.
	Asked string `json:"asked"`
}

func (j Job) key() string { return j.JobID + "/" + j.Platform }

// Store is what the stage needs from the database. *pg.Store implements it.
type Store interface {
	ListFileSources(ctx context.Context) ([]Source, error)
	ClaimFileSource(ctx context.Context, workspace, source, runID string) (Claim, error)
	EndFileScan(ctx context.Context, workspace, source string, refused []string) error
	FailPoll(ctx context.Context, workspace, source string, failure pull.Failure) error
	GetPublishJob(ctx context.Context, workspace, job, platform string) (json.RawMessage, error)
	PutPublishJob(ctx context.Context, workspace, source string, payload any) (Job, error)
	ImportPublishState(ctx context.Context, workspace, source string, state any) (Job, error)
	ReceiveApproval(ctx context.Context, workspace, source string, approval any) (Decision, error)
	StartPublishJob(ctx context.Context, workspace, job, platform, digest string) (Job, error)
	FollowPublishJobs(ctx context.Context, workspace, source string, limit int) ([]Job, error)
	RecordJobFiles(ctx context.Context, workspace, job, platform, updatedAt string) error
	RefuseFile(ctx context.Context, workspace, source string, file any) (first bool, err error)
	PutJobArtifact(ctx context.Context, workspace, source string, origin media.Origin) (media.Registered, error)
}

// Decision is the answer to an approval file.
type Decision struct {
	Applied bool   `json:"applied"`
	Reason  string `json:"reason"`
	Status  string `json:"status"`
	// First means that the refusal was reported now.
	First bool `json:"first"`
}

// Contents is the media store. *media.Store implements it.
type Contents interface {
	Put(ctx context.Context, r io.Reader, kind autopost.MediaKind, limits media.Limits) (media.Origin, error)
	Has(ctx context.Context, blobRef string, size int64) (bool, error)
}

// Keys open signing keys.
type Keys interface {
	Credential(ctx context.Context, workspace, authRef string, platform autopost.Platform) (autopost.Secret, error)
}

// Finder asks a platform whether the post of a job exists.
type Finder interface {
	// FindJob returns an unclear verdict if the platform cannot be asked.
	FindJob(ctx context.Context, workspace, job, platform string) (autopost.Verdict, time.Time)
}
