package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"autopost/internal/api"
	"autopost/internal/ingest/pull"
	"autopost/internal/ingest/pull/item"
	"autopost/internal/ingest/pull/opml"
	"autopost/internal/pg"
)

const (
	// shownItems is how many items of a test are shown, the newest.
	shownItems = 10
	// trialTimeout limits a test.
	trialTimeout = time.Minute
)

// SourceTester polls sources and stores nothing. It implements api.SourceTester.
type SourceTester struct {
	Store    *pg.Store
	Fetchers map[string]pull.Fetcher
}

var _ api.SourceTester = SourceTester{}

// ReadFeeds reads a list of feeds: OPML, or comma-separated values.
func (t SourceTester) ReadFeeds(text string) ([]api.Feed, error) {
	list, err := opml.Read([]byte(text))
	feeds := make([]api.Feed, 0, len(list))
	for _, f := range list {
		feeds = append(feeds, api.Feed{ID: f.ID, URL: f.URL, Tags: f.Tags})
	}
	return feeds, err
}

// TestSource polls a stored source without its HTTP validators, with config over its configuration, or a new one if id is
// "". It returns nil for an unknown id.
func (t SourceTester) TestSource(ctx context.Context, workspace, id, kind string, config map[string]any) (*api.SourceTrial, error) {
	source, err := t.sourceOf(ctx, workspace, id, kind, config)
	if err != nil || source == nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, trialTimeout)
	defer cancel()
	found := &api.SourceTrial{}
	fetcher, ok := t.Fetchers[source.Kind]
	if !ok {
		found.Code, found.Error = "pull_config", fmt.Sprintf("kind must be rss, api or db, got %q", source.Kind)
		return found, nil
	}
	batch, err := fetcher.Fetch(ctx, *source)
	if failure, is := errors.AsType[*pull.Failure](err); is {
		found.Code, found.Error, found.Feeds = failure.Code, failure.Message, failure.Found
		return found, nil
	}
	if err != nil {
		return nil, err
	}
	found.OK = true
	return found, t.take(ctx, found, *source, batch)
}

func (t SourceTester) sourceOf(ctx context.Context, workspace, id, kind string, config map[string]any) (*pull.Source, error) {
	source := &pull.Source{WorkspaceID: workspace, SourceID: "test", Kind: kind, Config: json.RawMessage("{}")}
	if id != "" {
		found, err := t.Store.GetSource(ctx, workspace, id)
		if err != nil || found == nil {
			return nil, err
		}
		cursor, err := item.ParseCursor(found.Cursor)
		if err != nil {
			return nil, err
		}
		cursor.ETag, cursor.LastModified = "", ""
		source = found
		if source.Cursor, err = cursor.Encode(); err != nil {
			return nil, err
		}
	}
	if len(config) == 0 {
		return source, nil
	}
	all := map[string]any{}
	if err := json.Unmarshal(source.Config, &all); err != nil {
		return nil, err
	}
	maps.Copy(all, config)
	maps.DeleteFunc(all, func(_ string, value any) bool { return value == nil })
	var err error
	source.Config, err = json.Marshal(all)
	return source, err
}

// take records the items of a batch and plans the newest post.
func (t SourceTester) take(ctx context.Context, found *api.SourceTrial, source pull.Source, batch pull.Batch) error {
	found.Total = len(batch.Items)
	undated, unidentified := 0, 0
	var newest *pull.Item
	for i := range batch.Items {
		item := &batch.Items[i]
		if item.PublishedAt == nil {
			undated++
		}
		if strings.HasPrefix(item.SourceRef, "sha256:") {
			unidentified++
		}
		if !item.Skip {
			found.Publish++
		}
		if !item.Skip || newest == nil || newest.Skip {
			newest = item
		}
		if i >= len(batch.Items)-shownItems {
			found.Items = append(found.Items, tried(item))
		}
	}
	note := func(when bool, format string, args ...any) {
		if when {
			found.Notes = append(found.Notes, fmt.Sprintf(format, args...))
		}
	}
	note(found.Total == 0, "the source has no items now")
	note(found.Total > 0 && undated == found.Total, "no item has a readable date: the items keep the order of the source")
	note(undated > 0 && undated < found.Total, "%d items have no readable date, or a date in the future", undated)
	note(unidentified > 0, "%d items have no usable id or link: a changed title makes them new items", unidentified)
	note(found.Total > 0 && found.Publish == 0, "no item would be published: read the reason of each item; backfill_items is the number that the first poll publishes")
	note(batch.Incomplete != nil, "one poll cannot read all items")
	if newest == nil {
		return nil
	}
	post, err := json.Marshal(struct {
		pull.Payload
		Tags []string `json:"tags,omitempty"`
	}{newest.Payload, newest.Tags})
	if err != nil {
		return err
	}
	if found.Plan, err = t.Store.Plan(ctx, source.WorkspaceID, post, ""); err != nil {
		return fmt.Errorf("plan the newest item: %w", err)
	}
	return nil
}

func tried(i *pull.Item) api.TriedItem {
	shown := api.TriedItem{SourceRef: i.SourceRef, PublishedAt: i.PublishedAt, Text: i.Payload.Text, Tags: i.Tags, Skip: i.SkipReason}
	for _, m := range i.Payload.Media {
		shown.Media = append(shown.Media, api.TriedFile{Type: string(m.Type), URL: m.URL})
	}
	return shown
}
