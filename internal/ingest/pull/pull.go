// Package pull is the door that goes out and looks: it asks every due source
// for its items and hands them to the database in chunks.
//
// What was seen before, what becomes of an item and when a source is due next
// is decided in SQL. A crash at any line repeats work and loses none, because
// the cursor moves only behind a committed chunk.
package pull

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"autopost"
)

// Source is a row of autopost.pull_sources with its cursor, leased to this daemon.
type Source struct {
	WorkspaceID string
	SourceID    string
	// EndpointID is nil when no enabled endpoint of kind pull_source names the source.
	EndpointID *string
	// Kind picks the Fetcher ("rss", "api", "db").
	Kind   string
	Config json.RawMessage
	// Cursor is what the last committed chunk left; empty at first sight.
	Cursor json.RawMessage
}

// Item is one thing a source has to tell, in the form that
// autopost.ingest_pull_chunk takes.
type Item struct {
	// SourceRef is the same for the same item at every poll.
	SourceRef string  `json:"source_ref"`
	Payload   Payload `json:"payload"`
	// Tags are the source's and the item's categories; they route.
	Tags []string `json:"tags,omitempty"`
	// PublishedAt is the source's own time of the item, nil when it gives none.
	PublishedAt *time.Time `json:"published_at,omitempty"`
	// Skip marks the item as seen without publishing it.
	Skip bool `json:"skip,omitempty"`
	// SkipReason is why: "backfill", "include", "exclude", "empty".
	SkipReason string `json:"skip_reason,omitempty"`
	// Cursor stands behind this item: a poll that starts from it loses none of the later ones.
	Cursor json.RawMessage `json:"cursor"`
}

// Payload is the part of the raw payload that sources fill in.
type Payload struct {
	SourceRef string  `json:"source_ref,omitempty"`
	Text      string  `json:"text,omitempty"`
	ParseMode string  `json:"parse_mode,omitempty"`
	Media     []Media `json:"media,omitempty"`
}

// Media is one medium of an item, by URL.
type Media struct {
	Type autopost.MediaKind `json:"type"`
	URL  string             `json:"url"`
}

// Batch is what one poll of a source brought.
type Batch struct {
	// Items are all that the source shows now, oldest first, seen ones included.
	Items []Item
	// Cursor stands behind the whole batch; the last item bears the same.
	Cursor json.RawMessage
	// Incomplete is set when the source had more than one poll may read, and says
	// what to do. No cursor of the batch then stands behind what was left out.
	Incomplete *Failure
}

// Fetcher asks one source. Its errors are *Failure where the source or its
// configuration is to blame.
type Fetcher interface {
	Fetch(ctx context.Context, source Source) (Batch, error)
}

// Failure is why a source could not be polled.
type Failure struct {
	// Code is a stable key ("pull_config", "pull_http_404").
	Code string
	// Message says what is wrong and the remedy; it holds no URL and no secret.
	Message string
	// RetryAfter is how long the source wants to be left alone; 0 is no wish.
	RetryAfter time.Duration
	// Gone means that the source says it will not come back.
	Gone bool
	// Found are feeds that a page names which is none itself. They are shown to a
	// person who asks, and recorded nowhere.
	Found []string
}

// Error implements error.
func (f *Failure) Error() string { return f.Code + ": " + f.Message }

// ChunkAnswer is what became of a chunk's items.
type ChunkAnswer struct {
	// CursorTo is the cursor to set now that the chunk is committed.
	CursorTo  json.RawMessage
	Enqueued  int
	Duplicate int
	Rejected  int
	Submitted int
	// SkippedBy counts the new items that were only marked as seen, by reason.
	SkippedBy map[string]int
}

// Sources says what is to be polled.
type Sources interface {
	// ReadySources names the workspaces in which a source is due, and says how long it is until another one is.
	ReadySources(ctx context.Context) (workspaces []string, nextIn *time.Duration, err error)
	// ListDueSources leases at most limit sources that are due.
	ListDueSources(ctx context.Context, workspace string, limit int) ([]Source, error)
}

// Chunks takes the items. SetPullCursor also ends the source's poll.
type Chunks interface {
	IngestPullChunk(ctx context.Context, workspace, sourceID, endpointID string, items json.RawMessage) (ChunkAnswer, error)
	SetPullCursor(ctx context.Context, workspace, sourceID string, cursor json.RawMessage) error
}

// ErrUnavailable marks an error of Chunks that is no fault of what the source has: the database takes nothing at the
// moment. The source is polled again when its lease is over.
var ErrUnavailable = errors.New("the database takes nothing at the moment")

// Failures records polls that failed, and moves their next one out.
type Failures interface {
	FailPoll(ctx context.Context, workspace, sourceID string, failure Failure) error
}

// Credentials turn the auth_ref of a source into the credential itself.
type Credentials interface {
	// Credential fails when the reference is bound nowhere or for another platform.
	Credential(ctx context.Context, workspace, authRef, platform string) (autopost.Secret, error)
}

// Runs records each workspace's round.
type Runs interface {
	StartIngestRun(ctx context.Context, workspace, kind, endpointID, sourceID string) (runID string, err error)
	FinishIngestRun(ctx context.Context, workspace, runID string, stats json.RawMessage) error
}
