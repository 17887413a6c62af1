package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"autopost/internal/config"
	"autopost/internal/daemon"
	"autopost/internal/ingest/pull"
	"autopost/internal/ingest/pull/item"
	"autopost/internal/outbound"
	"autopost/internal/pg"
	"autopost/internal/table"
)

const (
	// shownItems is how many items of a test are printed, the newest.
	shownItems = 10
	// tryTimeout limits a test.
	tryTimeout = time.Minute
)

func sourceTestCommand() *cobra.Command {
	var f sourceFlags
	var read readFlags
	cmd := &cobra.Command{
		Use:   "test [ID]",
		Short: "Poll a source and print the posts; write nothing",
		Long: `Poll a source, stored or described by flags. The command prints the posts that it would
give, and the channels that would get the newest one. It writes nothing. If the URL is a
web page instead of a feed, the command prints the feeds that the page names.`,
		Example: `  autopost source test --url https://example.org/feed
  autopost source test news`,
		Args: atMostOneArgument("source id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			fields, err := f.fields(cmd)
			if err != nil {
				return err
			}
			if (len(args) == 1) == (fields.Config != nil) {
				return usageError{errors.New("either a source id or flags like --url must be given: write --url https://…")}
			}
			return withConfiguredStore(cmd.Context(), func(ctx context.Context, cfg config.Config, store *pg.Store) error {
				workspace, err := chooseWorkspace(ctx, store, read.workspace)
				if err != nil {
					return err
				}
				source, err := sourceToTry(ctx, store, workspace, args, fields)
				if err != nil {
					return err
				}
				return trySource(ctx, cfg, store, source, read.output)
			})
		},
	}
	f.flags(cmd)
	read.add(cmd)
	return cmd
}

// sourceToTry returns the stored source without its HTTP validators, or the source of the
// flags.
func sourceToTry(ctx context.Context, store *pg.Store, workspace string, args []string, fields pg.SourceFields) (pull.Source, error) {
	if len(args) == 0 {
		return pull.Source{WorkspaceID: workspace, SourceID: "test", Kind: cmp.Or(fields.Kind, "rss"), Config: fields.Config}, nil
	}
	found, err := store.GetSource(ctx, workspace, args[0])
	if err != nil {
		return pull.Source{}, err
	}
	if found == nil {
		return pull.Source{}, unknownSource(args[0])
	}
	source := *found
	cursor, err := item.ParseCursor(source.Cursor)
	if err != nil {
		return pull.Source{}, err
	}
	cursor.ETag, cursor.LastModified = "", ""
	source.Cursor, err = cursor.Encode()
	return source, err
}

// sourceTrial is the result of a test.
type sourceTrial struct {
	OK    bool     `json:"ok"`
	Code  string   `json:"code,omitempty"`
	Error string   `json:"error,omitempty"`
	Feeds []string `json:"feeds,omitempty"`
	// Items are the newest items.
	Items []triedItem `json:"items,omitempty"`
	// Total counts all items, Publish those that would be published.
	Total   int             `json:"total"`
	Publish int             `json:"publish"`
	Notes   []string        `json:"notes,omitempty"`
	Plan    json.RawMessage `json:"plan,omitempty"`
}

type triedItem struct {
	SourceRef   string       `json:"source_ref"`
	PublishedAt *time.Time   `json:"published_at"`
	Text        string       `json:"text"`
	Media       []pull.Media `json:"media,omitempty"`
	Tags        []string     `json:"tags,omitempty"`
	Skip        string       `json:"skip,omitempty"`
}

func trySource(ctx context.Context, cfg config.Config, store *pg.Store, source pull.Source, out output) error {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	vault, err := daemon.NewVault(cfg, store, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	fetcher, ok := daemon.Fetchers(outbound.GuardedConfig{Allow: cfg.OutboundAllow, Timeout: cfg.DownloadTimeout}, vault)[source.Kind]
	if !ok {
		return usageError{fmt.Errorf("--kind must be rss, api or db, got %q", source.Kind)}
	}
	batch, err := fetcher.Fetch(ctx, source)
	found := sourceTrial{OK: err == nil}
	if failure, is := errors.AsType[*pull.Failure](err); is {
		found.Code, found.Error, found.Feeds = failure.Code, failure.Message, failure.Found
	} else if err != nil {
		return err
	} else if err := found.take(ctx, store, source, batch); err != nil {
		return err
	}
	if out.asJSON {
		if err := printJSON(found); err != nil {
			return err
		}
	} else if err := found.print(out); err != nil {
		return err
	}
	if !found.OK {
		return errSilent
	}
	return nil
}

// take records the items of a batch and plans the newest post.
func (t *sourceTrial) take(ctx context.Context, store *pg.Store, source pull.Source, batch pull.Batch) error {
	t.Total = len(batch.Items)
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
			t.Publish++
		}
		if !item.Skip || newest == nil || newest.Skip {
			newest = item
		}
		if i >= len(batch.Items)-shownItems {
			t.Items = append(t.Items, triedItem{item.SourceRef, item.PublishedAt, item.Payload.Text, item.Payload.Media, item.Tags, item.SkipReason})
		}
	}
	note := func(when bool, format string, args ...any) {
		if when {
			t.Notes = append(t.Notes, fmt.Sprintf(format, args...))
		}
	}
	note(t.Total == 0, "the source has no items now")
	note(t.Total > 0 && undated == t.Total, "no item has a readable date: the items keep the order of the source")
	note(undated > 0 && undated < t.Total, "%d items have no readable date, or a date in the future", undated)
	note(unidentified > 0, "%d items have no usable id or link: a changed title makes them new items", unidentified)
	note(t.Total > 0 && t.Publish == 0, "no item would be published: read the reason of each item; backfill_items is the number that the first poll publishes")
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
	if t.Plan, err = store.Plan(ctx, source.WorkspaceID, post, ""); err != nil {
		return fmt.Errorf("plan the newest item: %w", err)
	}
	return nil
}

func (t *sourceTrial) print(out output) error {
	if !t.OK {
		note("%s: %s", t.Code, t.Error)
		for _, feed := range t.Feeds {
			note("the page names this feed: %s", feed)
		}
		return nil
	}
	rows := make([][]any, 0, len(t.Items))
	for i := len(t.Items) - 1; i >= 0; i-- {
		item := t.Items[i]
		rows = append(rows, []any{instantOr(item.PublishedAt, "no date"), item.result(), table.Excerpt(item.Text), item.Tags, len(item.Media), table.Excerpt(item.SourceRef)})
	}
	err := out.rows(nil, table.Table{
		Columns: []string{"published", "result", "text", "tags", "media", "item"}, Details: []string{"tags", "media", "item"}, Rows: rows,
	})
	if err != nil {
		return err
	}
	say("%s; %d would be published, unless published before; a poll only marks the others as seen", counted(t.Total, "item"), t.Publish)
	for _, remark := range t.Notes {
		note("%s", remark)
	}
	if t.Plan == nil {
		return nil
	}
	say("channels of the newest post:")
	return out.printPlan(t.Plan)
}

// result returns what a poll would do with an item, with the reason if it publishes nothing.
func (i triedItem) result() table.Word {
	if i.Skip == "" {
		return "publish"
	}
	return table.Word("skip: " + i.Skip)
}
