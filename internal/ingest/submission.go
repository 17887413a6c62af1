package ingest

import (
	"context"
	"encoding/json"
	"net/url"
	"time"

	"autopost"
	"autopost/internal/media"
)

// Submission is an accepted post that waits for its media. It is leased until LeaseUntil.
type Submission struct {
	WorkspaceID  string
	SubmissionID string
	ClaimToken   string
	Attempt      int
	LeaseUntil   time.Time
	// RawPayload is the post as the source sent it.
	RawPayload json.RawMessage
}

// Store is what this package needs from the database. *pg.Store implements it.
type Store interface {
	// ReadySubmissionWorkspaces returns workspaces that have submissions to fetch now.
	ReadySubmissionWorkspaces(ctx context.Context, limit int) ([]string, error)
	// ClaimSubmissions leases at most limit of them.
	ClaimSubmissions(ctx context.Context, workspace, runID string, limit int) ([]Submission, error)
	// CommitSubmission commits the outcome: the post is enqueued, tried again or failed. A stale token changes
	// nothing and is not an error.
	CommitSubmission(ctx context.Context, workspace, submissionID, claimToken string, outcome json.RawMessage) (json.RawMessage, error)
	// ExtendSubmission renews the lease; held is false if the token is stale.
	ExtendSubmission(ctx context.Context, workspace, submissionID, claimToken string) (held bool, err error)
	// ReadyFanoutWorkspaces returns workspaces that have a fan-out job to continue.
	ReadyFanoutWorkspaces(ctx context.Context, limit int) ([]string, error)
	// RunFanout processes the next range of the oldest job of a workspace, of at most limit channels.
	RunFanout(ctx context.Context, workspace string, limit int) (Fanout, error)
}

// Origins registers media of a workspace. *media.WorkspaceStore implements it.
type Origins interface {
	// Register returns a *media.Rejection if the content is refused, and media.ErrBusy if it may succeed later.
	Register(ctx context.Context, workspace string, origin media.Origin) error
}

// MediaFetcher downloads one medium into the media store. *media.Fetcher implements it.
type MediaFetcher interface {
	Fetch(ctx context.Context, url string, kind autopost.MediaKind) (media.Origin, *autopost.Error)
}

// outcome is the p_outcome of autopost.commit_submission.
type outcome struct {
	OK    bool            `json:"ok"`
	Media []placed        `json:"media,omitempty"`
	Error *autopost.Error `json:"error,omitempty"`
}

// placed is a medium of the payload that is in the media store.
type placed struct {
	Index   int    `json:"index"`
	BlobRef string `json:"blob_ref"`
	// Filename is the name of a file or sound at its source.
	Filename string `json:"filename,omitempty"`
}

// wanted is a medium of the payload to fetch.
type wanted struct {
	index int
	url   string
	kind  autopost.MediaKind
}

// mediaToFetch returns the media that the payload names only by URL.
func mediaToFetch(raw json.RawMessage) ([]wanted, *autopost.Error) {
	var payload struct {
		Media []autopost.Media `json:"media"`
	}
	if err := json.Unmarshal(raw, &payload); err != nil {
		return nil, &autopost.Error{
			Category: autopost.Permanent, Scope: autopost.ScopeDelivery, Code: autopost.CodeValidationFailed,
			Known: true, Message: "media must be an array of objects: " + err.Error(),
		}
	}
	var list []wanted
	for i, item := range payload.Media {
		if item.URL != "" && item.BlobRef+item.FileID+item.AttachmentToken == "" {
			list = append(list, wanted{index: i, url: item.URL, kind: item.Type})
		}
	}
	return list, nil
}

// hostOf returns the host of the first medium.
func hostOf(list []wanted) string {
	if len(list) == 0 {
		return ""
	}
	address, err := url.Parse(list[0].url)
	if err != nil {
		return ""
	}
	return address.Hostname()
}
