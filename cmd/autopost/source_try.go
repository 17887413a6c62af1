package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"autopost/internal/config"
	"autopost/internal/ingest/pull"
	"autopost/internal/ingest/pull/shape"
	"autopost/internal/outbound"
	"autopost/internal/pg"
)

const (
	// shownItems is how many items of a test are shown, the newest.
	shownItems = 10
	// tryTimeout bounds a test.
	tryTimeout = time.Minute
)

func sourceTestCommand() *cobra.Command {
	var f sourceFlags
	var workspace string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "test [ID]",
		Short: "Fetch a source and show what would come in and where it would go; writes nothing",
		Long: `Fetch a source, one that is there or one given by flags, and show what would come in
as posts and where the newest of them would go. Nothing is written. What cannot be
read is explained: a page that is no feed names the feed it belongs to.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return misuse{fmt.Errorf("%s takes one id at most\nsee %s --help", cmd.CommandPath(), cmd.CommandPath())}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			fields, err := f.fields(cmd)
			if err != nil {
				return err
			}
			if (len(args) == 1) == (fields.Config != nil) {
				return misuse{fmt.Errorf("%s takes the id of a source, or flags that describe one: write --url https://…", cmd.CommandPath())}
			}
			return withStore(cmd.Context(), func(ctx context.Context, store *pg.Store) error {
				cfg, err := loadConfig()
				if err != nil {
					return err
				}
				if workspace, err = chooseWorkspace(ctx, store, workspace); err != nil {
					return err
				}
				source, err := sourceToTry(ctx, store, workspace, args, fields)
				if err != nil {
					return err
				}
				return trySource(ctx, cfg, store, source, asJSON)
			})
		},
	}
	f.flags(cmd)
	workspaceFlag(cmd, &workspace)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// sourceToTry is the stored source, asked as if nothing were known of its
// validators, or the one that the flags describe.
func sourceToTry(ctx context.Context, store *pg.Store, workspace string, args []string, fields pg.SourceFields) (pull.Source, error) {
	if len(args) == 0 {
		return pull.Source{WorkspaceID: workspace, SourceID: "test", Kind: cmp.Or(fields.Kind, "rss"), Config: fields.Config}, nil
	}
	found, err := store.GetSource(ctx, workspace, args[0])
	if err != nil {
		return pull.Source{}, err
	}
	if found == nil {
		return pull.Source{}, fmt.Errorf("there is no source %s: autopost source list shows them", args[0])
	}
	source := pull.Source(*found)
	cursor, err := shape.ParseCursor(source.Cursor)
	if err != nil {
		return pull.Source{}, err
	}
	cursor.ETag, cursor.LastModified = "", ""
	source.Cursor, err = cursor.Encode()
	return source, err
}

// trial is what a test found.
type trial struct {
	OK    bool     `json:"ok"`
	Code  string   `json:"code,omitempty"`
	Error string   `json:"error,omitempty"`
	Feeds []string `json:"feeds,omitempty"`
	// Items are the newest, Total counts all, Publish those that would be published.
	Items   []triedItem     `json:"items,omitempty"`
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

func trySource(ctx context.Context, cfg config.Config, store *pg.Store, source pull.Source, asJSON bool) error {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	guarded := outbound.Guarded(outbound.GuardedConfig{Allow: cfg.OutboundAllow, Timeout: cfg.DownloadTimeout})
	vault, err := newVault(cfg, store, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	fetcher, ok := fetchers(guarded, vault)[source.Kind]
	if !ok {
		return misuse{fmt.Errorf("kind %q cannot be tested: use rss, api or db", source.Kind)}
	}
	batch, err := fetcher.Fetch(ctx, source)
	found := trial{OK: err == nil}
	if failure, is := errors.AsType[*pull.Failure](err); is {
		found.Code, found.Error, found.Feeds = failure.Code, failure.Message, failure.Found
	} else if err != nil {
		return err
	} else if err := found.take(ctx, store, source, batch); err != nil {
		return err
	}
	if asJSON {
		encoder := json.NewEncoder(os.Stdout)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(found); err != nil {
			return err
		}
	} else if err := found.print(); err != nil {
		return err
	}
	if !found.OK {
		return errSilent
	}
	return nil
}

// take notes what a batch holds, and plans its newest post.
func (t *trial) take(ctx context.Context, store *pg.Store, source pull.Source, batch pull.Batch) error {
	t.Total = len(batch.Items)
	undated, nameless := 0, 0
	var newest *pull.Item
	for i := range batch.Items {
		item := &batch.Items[i]
		if item.PublishedAt == nil {
			undated++
		}
		if strings.HasPrefix(item.SourceRef, "sha256:") {
			nameless++
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
	note(t.Total == 0, "it has no items now")
	note(t.Total > 0 && undated == t.Total, "no item has a date that can be read: they are taken in the order of the source")
	note(undated > 0 && undated < t.Total, "%d items have no date that can be read, or one in the future", undated)
	note(nameless > 0, "%d items have neither an id nor a link, or a very long one: a change of their title makes them new", nameless)
	note(t.Total > 0 && t.Publish == 0, "nothing would be published: see what each item is skipped for; backfill_items says how many are at first sight")
	note(batch.Incomplete != nil, "one poll cannot read it all")
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
	if t.Plan, err = store.Plan(ctx, source.WorkspaceID, post, time.Time{}); err != nil {
		return fmt.Errorf("plan the newest item: %w", err)
	}
	return nil
}

func (t *trial) print() error {
	if !t.OK {
		fmt.Fprintf(os.Stderr, "autopost: %s: %s\n", t.Code, t.Error)
		for _, feed := range t.Feeds {
			fmt.Fprintf(os.Stderr, "autopost: the page names this feed: %s\n", feed)
		}
		return nil
	}
	rows := make([][]any, 0, len(t.Items))
	for i := len(t.Items) - 1; i >= 0; i-- {
		item := t.Items[i]
		verdict := "would be taken, unless it was before"
		if item.Skip != "" {
			verdict = "only marked as seen: " + item.Skip
		}
		rows = append(rows, []any{excerptOf(item.SourceRef), instantOr(item.PublishedAt, "no date"), excerptOf(item.Text), len(item.Media), strings.Join(item.Tags, ", "), verdict})
	}
	if err := printTable(os.Stdout, false, []string{"item", "published", "text", "media", "tags", "what becomes of it"}, rows); err != nil {
		return err
	}
	fmt.Fprintf(os.Stdout, "%d items, of which %d would be published\n", t.Total, t.Publish)
	for _, note := range t.Notes {
		fmt.Fprintln(os.Stderr, "autopost: "+note)
	}
	if t.Plan == nil {
		return nil
	}
	fmt.Fprintln(os.Stdout, "the newest of them would go here:")
	return tellPlan(t.Plan, false)
}
