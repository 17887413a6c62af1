// Package pull polls sources: it fetches the items of every due source and gives them to the database in chunks.
//
// SQL decides which items are new, what happens to an item and when a source is due next. A crash at any line repeats
// work and loses none, because the cursor moves only behind a committed chunk.
package pull

import (
	"context"
	"encoding/json"
	"time"

	"autopost"
)

// Source is a row of autopost.pull_sources with its cursor, leased to this daemon.
type Source struct {
	WorkspaceID string `json:"workspace_id"`
	SourceID    string `json:"source_id"`
	// EndpointID is nil when no enabled endpoint of kind pull_source names the source.
	EndpointID *string `json:"endpoint_id"`
	// Kind picks the Fetcher ("rss", "api", "db").
	Kind   string          `json:"kind"`
	Config json.RawMessage `json:"config_json"`
	// Cursor is the cursor after the last committed chunk; empty before the first poll.
	Cursor json.RawMessage `json:"cursor_json"`
}

// Item is one item of a source, in the form of autopost.ingest_pull_chunk.
type Item struct {
	// SourceRef is the same for the same item at every poll.
	SourceRef string  `json:"source_ref"`
	Payload   Payload `json:"payload"`
	// Tags are the tags of the source and the categories of the item. They select channels.
	Tags []string `json:"tags,omitempty"`
	// PublishedAt is the time of the item in the source; nil if it has none.
	PublishedAt *time.Time `json:"published_at,omitempty"`
	// Skip marks the item as seen without publishing it.
	Skip bool `json:"skip,omitempty"`
	// SkipReason is backfill, include, exclude or empty.
	SkipReason string `json:"skip_reason,omitempty"`
	// Cursor is the cursor after this item. A poll that starts from it sees all later items.
	Cursor json.RawMessage `json:"cursor"`
}

// Payload is the part of a raw payload that a source sets.
type Payload struct {
	SourceRef string  `json:"source_ref,omitempty"`
	Text      string  `json:"text,omitempty"`
	ParseMode string  `json:"parse_mode,omitempty"`
	Link      string  `json:"link,omitempty"`
	Media     []Media `json:"media,omitempty"`
}

// Media is one medium of an item, by URL.
type Media struct {
	Type autopost.MediaKind `json:"type"`
	URL  string             `json:"url"`
}

// Batch is the result of one poll of a source.
type Batch struct {
	// Items are all items that the source shows now, oldest first, also those seen before.
	Items []Item
	// Cursor is the cursor after the whole batch. It equals that of the last item.
	Cursor json.RawMessage
	// Incomplete is set if the source had more than one poll may read, and contains the remedy. No cursor of the
	// batch is then after an item that was left out.
	Incomplete *Failure
}

// Fetcher fetches the items of one source. An error that the source or its configuration causes is a *Failure.
type Fetcher interface {
	Fetch(ctx context.Context, source Source) (Batch, error)
}

// Failure is the reason of a failed poll.
type Failure struct {
	// Code is a stable key ("pull_config", "pull_http_404").
	Code string
	// Message contains the cause and the remedy, but no URL and no secret.
	Message string
	// RetryAfter is the pause that the source asks for; 0 if it asks for none.
	RetryAfter time.Duration
	// Gone means that the source is permanently gone. It is then disabled.
	Gone bool
	// Found are the feeds that an HTML page links to. Only source test shows them.
	Found []string
}

// Error implements error.
func (f *Failure) Error() string { return f.Code + ": " + f.Message }

// ChunkAnswer is the result of a chunk.
type ChunkAnswer struct {
	// CursorTo is the cursor after the chunk.
	CursorTo  json.RawMessage `json:"cursor_to"`
	Enqueued  int             `json:"enqueued"`
	Duplicate int             `json:"duplicate"`
	Rejected  int             `json:"rejected"`
	Submitted int             `json:"submitted"`
	// SkippedBy counts the new items that were only marked as seen, by reason.
	SkippedBy map[string]int `json:"skipped_by"`
	RunID     string         `json:"run_id"`
	// Results are the answers of the new items.
	Results []ItemResult `json:"results"`
}

// ItemResult is the answer of one item. SourceRef is set for a rejected one.
type ItemResult struct {
	Status    string `json:"status"`
	SourceRef string `json:"source_ref"`
}

// Store is what this package needs from the database. *pg.Store implements it.
type Store interface {
	// ReadySources returns the workspaces in which a source is due, and the time until another one is due; nil means
	// that none will be.
	ReadySources(ctx context.Context) (workspaces []string, nextIn *time.Duration, err error)
	// ClaimSources leases at most limit sources that are due to the run.
	ClaimSources(ctx context.Context, workspace, runID string, limit int) ([]Source, error)
	// IngestPullChunk stores a chunk of items in one transaction.
	IngestPullChunk(ctx context.Context, workspace, sourceID, endpointID string, items json.RawMessage) (ChunkAnswer, error)
	// SetPullCursor stores the cursor and ends the poll.
	SetPullCursor(ctx context.Context, workspace, sourceID string, cursor json.RawMessage) error
	// FailPoll records a failed poll and delays the next one.
	FailPoll(ctx context.Context, workspace, sourceID string, failure Failure) error
	StartIngestRun(ctx context.Context, workspace, kind, endpointID, sourceID string) (runID string, err error)
	FinishIngestRun(ctx context.Context, workspace, runID string, stats json.RawMessage) error
}

// Credentials opens the credential that auth_ref names.
type Credentials interface {
	// Credential fails if the name is not bound, or bound for another platform.
	Credential(ctx context.Context, workspace, authRef string, platform autopost.Platform) (autopost.Secret, error)
}
