package ingest

import (
	"context"
	"encoding/json"
	"net/url"
	"time"

	"autopost"
	"autopost/internal/media"
)

// Submission is a post that was accepted and waits for its media: a row of
// autopost.submissions, leased under ClaimToken until LeaseUntil.
type Submission struct {
	WorkspaceID  string
	SubmissionID string
	ClaimToken   string
	Attempt      int
	LeaseUntil   time.Time
	// RawPayload is the post as its source gave it.
	RawPayload json.RawMessage
}

// Queue is what the worker needs of the submissions in the database.
type Queue interface {
	// ReadySubmissionWorkspaces names workspaces that have submissions to fetch now.
	ReadySubmissionWorkspaces(ctx context.Context, limit int) ([]string, error)
	// ClaimSubmissions leases at most limit of them.
	ClaimSubmissions(ctx context.Context, workspace, runID string, limit int) ([]Submission, error)
	// CommitSubmission gives the outcome: the post is enqueued, tried again or
	// failed. The token is checked; a stale one is an answer.
	CommitSubmission(ctx context.Context, workspace, submissionID, claimToken string, outcome json.RawMessage) (json.RawMessage, error)
	// ExtendSubmission renews the lease under the token; held is false when it is another's by now.
	ExtendSubmission(ctx context.Context, workspace, submissionID, claimToken string) (held bool, err error)
}

// Origins records what the media origin holds for a workspace; *media.Depository does.
type Origins interface {
	// Register answers by a *media.Rejection or media.ErrBusy when it may not be held, or not now.
	Register(ctx context.Context, workspace string, origin media.Origin) error
}

// MediaFetcher brings one medium into the origin; *media.Fetcher does.
type MediaFetcher interface {
	Fetch(ctx context.Context, url string, kind autopost.MediaKind) (media.Origin, *autopost.Error)
}

// outcome is the p_outcome of autopost.commit_submission.
type outcome struct {
	OK    bool            `json:"ok"`
	Media []placed        `json:"media,omitempty"`
	Error *autopost.Error `json:"error,omitempty"`
}

// placed says which medium of the payload is now where.
type placed struct {
	Index   int    `json:"index"`
	BlobRef string `json:"blob_ref"`
}

// wanted is a medium of the payload that must be fetched.
type wanted struct {
	index int
	url   string
	kind  autopost.MediaKind
}

// mediaToFetch lists the media that the payload names by URL alone.
func mediaToFetch(raw json.RawMessage) ([]wanted, *autopost.Error) {
	var payload struct {
		Media []autopost.Media `json:"media"`
	}
	if err := json.Unmarshal(raw, &payload); err != nil {
		return nil, &autopost.Error{
			Category: autopost.Permanent, Scope: autopost.ScopeDelivery, Code: autopost.CodeValidationFailed,
			Known: true, Message: "the media of the payload cannot be read: " + err.Error(),
		}
	}
	var list []wanted
	for i, item := range payload.Media {
		if item.URL != "" && item.BlobRef == "" && item.FileID == "" {
			list = append(list, wanted{index: i, url: item.URL, kind: item.Type})
		}
	}
	return list, nil
}

// hostOf is whose answer a submission waits for: the host of its first medium.
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
