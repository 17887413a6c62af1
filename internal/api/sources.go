package api

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"time"

	"autopost/internal/api/rest"
)

type source struct {
	SourceID   string         `json:"source_id" example:"blog"`
	Kind       string         `json:"kind" example:"rss"`
	Config     map[string]any `json:"config_json" doc:"The configuration with masked secrets."`
	Enabled    bool           `json:"enabled"`
	PolledAt   instant        `json:"polled_at" nullable:"true"`
	NextPollAt instant        `json:"next_poll_at" nullable:"true"`
	Failures   int            `json:"failures" doc:"Failures in a row."`
	LastError  map[string]any `json:"last_error" nullable:"true"`
	CreatedAt  time.Time      `json:"created_at"`
	UpdatedAt  time.Time      `json:"updated_at"`
}

// Feed is a feed of a list.
type Feed struct {
	// ID depends only on the address.
	ID, URL string
	Tags    []string
}

// SourceTester reads sources and lists of feeds, and stores nothing.
type SourceTester interface {
	// ReadFeeds reads a list of feeds: OPML, or comma-separated values.
	ReadFeeds(text string) ([]Feed, error)
	// TestSource polls a stored source, with config over its configuration, or a new one if id is "". It returns nil for
	// an unknown id.
	TestSource(ctx context.Context, workspace, id, kind string, config map[string]any) (*SourceTrial, error)
}

// SourceTrial is the result of a test of a source.
type SourceTrial struct {
	OK    bool     `json:"ok" doc:"Whether the source could be read."`
	Code  string   `json:"code,omitempty" example:"pull_http_404" doc:"The kind of the failure."`
	Error string   `json:"error,omitempty" doc:"The failure and its remedy."`
	Feeds []string `json:"feeds,omitempty" nullable:"false" doc:"The feeds that a web page names."`
	// Items are the newest items.
	Items   []TriedItem     `json:"items,omitempty" nullable:"false" doc:"The newest items, the newest last."`
	Total   int             `json:"total" doc:"All items that the source shows now."`
	Publish int             `json:"publish" doc:"How many of them the first poll would publish."`
	Notes   []string        `json:"notes,omitempty" nullable:"false" doc:"What is unusual about the items."`
	Plan    json.RawMessage `json:"plan,omitempty" doc:"The plan of the newest item, as POST /plan gives it."`
}

// TriedItem is an item of a tested source.
type TriedItem struct {
	SourceRef   string      `json:"source_ref" example:"https://example.org/1"`
	PublishedAt *time.Time  `json:"published_at" nullable:"true" doc:"Its time in the source; null if it has none."`
	Text        string      `json:"text" doc:"The text of its post."`
	Media       []TriedFile `json:"media,omitempty" nullable:"false" doc:"The media of its post."`
	Tags        []string    `json:"tags,omitempty" nullable:"false" doc:"The tags of its post."`
	Skip        string      `json:"skip,omitempty" doc:"Why the first poll would not publish it: backfill, include or exclude."`
}

// TriedFile is a medium of an item.
type TriedFile struct {
	Type string `json:"type" example:"image" doc:"image, video, audio, file or animation."`
	URL  string `json:"url" example:"https://example.org/1.jpg" doc:"Its address."`
}

type sourceTestInput struct {
	Body struct {
		SourceID string         `json:"source_id,omitempty" doc:"A stored source; config_json then replaces parts of its configuration."`
		Kind     string         `json:"kind,omitempty" enum:"rss,api,db" doc:"rss by default."`
		Config   map[string]any `json:"config_json,omitempty" doc:"The configuration."`
	}
}

func registerSourceActs(d *server, sources SourceTester) {
	rest.Register(d.Server, rest.Operation{
		ID: "test-source", Method: http.MethodPost, Path: "/sources/test", Summary: "Poll a source and show its posts", Answer: SourceTrial{},
		Example:     map[string]any{"kind": "rss", "config_json": map[string]any{"url": "https://example.org/feed"}},
		Description: "Polls a new source, or a stored one. The answer has the posts that it would give. Stores nothing. Private addresses are refused.",
	}, func(ctx context.Context, in *sourceTestInput) (rest.Reply, error) {
		return d.Get(ctx, "This workspace has no such source.", func(ctx context.Context, workspace string) (json.RawMessage, error) {
			trial, err := sources.TestSource(ctx, workspace, in.Body.SourceID, cmp.Or(in.Body.Kind, "rss"), in.Body.Config)
			if err != nil || trial == nil {
				return nil, err
			}
			return json.Marshal(trial)
		})
	})
	rest.Register(d.Server, rest.Operation{
		ID: "fetch-source", Method: http.MethodPost, Path: "/sources/{id}/fetch", Summary: "Poll a source now", Answer: put{}, Example: reasonExample,
		Description: "A daemon polls it within two seconds and publishes what is new. The result is in polled_at and last_error.",
	}, func(ctx context.Context, in *actInput) (rest.Reply, error) {
		return d.Do(ctx, in.AuditedWrite, rest.Change{Reason: why(in.Body), DryRun: in.DryRun, Subject: in.ID}, func(ctx context.Context, a rest.OperatorAction) (rest.Written, error) {
			return d.db.PollSourceNow(ctx, a, in.ID)
		})
	})
}

func registerSources(d *server) {
	listOf[source](d, "source", "source_id", "sources", "/sources", "List sources")
	rest.Register(d.Server, rest.Operation{
		ID: "put-source", Method: http.MethodPatch, Path: "/sources/{id}", Summary: "Create or change a source", Answer: put{},
		Change:      changeOf("source"),
		Example:     map[string]any{"kind": "rss", "config_json": map[string]any{"url": "https://example.org/feed"}, "reason": "a new blog"},
		Description: "Changes only the given fields. Creates the source if it does not exist.",
	}, func(ctx context.Context, in *putInput) (rest.Reply, error) {
		return d.patch(ctx, in.AuditedWrite, rest.Change{DryRun: in.DryRun, Subject: in.ID}, in.Body, func(ctx context.Context, a rest.OperatorAction, fields any) (rest.Written, error) {
			return d.db.PutSource(ctx, a, in.ID, fields)
		})
	})
}
