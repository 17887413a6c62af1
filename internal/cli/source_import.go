package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"autopost/internal/ingest/pull/opml"
	"autopost/internal/pg"
	"autopost/internal/table"
)

func sourceImportCommand() *cobra.Command {
	var m operatorFlags
	var f sourceFlags
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Add a source for each feed of an OPML or CSV file",
		Long: `Add a source for each feed of an OPML file, or of a CSV file with the columns url, title
and tags; "-" reads standard input. The command first checks all feeds and writes nothing
if one is wrong. A feed that is already a source stays unchanged, so the same file can be
imported again. --interval, --backfill, --template, --tag, --include and --exclude apply
to all feeds.`,
		Example: `  autopost source import feeds.opml --interval 10m --reason "regional feeds"`,
		Args:    oneArgument("file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			feeds, err := readFeeds(args[0])
			if err != nil {
				return err
			}
			if f.kind != "" || f.url != "" {
				return usageError{errors.New("--kind and --url must not be set: all feeds have kind rss and the URLs of the file")}
			}
			fields, err := f.fields(cmd)
			if err != nil {
				return err
			}
			return m.with(cmd, func(ctx context.Context, store *pg.Store) error {
				return m.importFeeds(ctx, store, feeds, fields.Config)
			})
		},
	}
	f.flags(cmd)
	m.flags(cmd)
	return cmd
}

func readFeeds(name string) ([]opml.Feed, error) {
	raw, err := readInputUpTo(name, opml.MaxBytes)
	if err != nil {
		return nil, err
	}
	feeds, err := opml.Read(raw)
	if err != nil {
		return nil, usageError{fmt.Errorf("%s: %w", name, err)}
	}
	return feeds, nil
}

// importedFeed is the result for one feed of a file.
type importedFeed struct {
	SourceID string `json:"source_id"`
	Title    string `json:"title"`
	URL      string `json:"url"`
	Result   string `json:"result"`
}

// importFeeds checks all new feeds, then adds their sources.
func (m *operatorFlags) importFeeds(ctx context.Context, store *pg.Store, feeds []opml.Feed, common json.RawMessage) error {
	known, err := sourcesByURL(ctx, store, m.act.Workspace)
	if err != nil {
		return err
	}
	var items []importedFeed
	rows := make([][]any, 0, len(feeds))
	fields := map[string]pg.SourceFields{}
	wrong := 0
	try := m.act
	try.DryRun = true
	for _, feed := range feeds {
		result, id := "new", feed.ID
		if as, ok := known[feed.URL]; ok {
			result, id = "exists already", as
		} else if fields[id], err = feedFields(feed, common); err != nil {
			return err
		} else if answer, err := pg.Decode[pg.SourceAnswer](store.PutSource(ctx, try, id, fields[id])); err != nil {
			return err
		} else if len(answer.Errors) > 0 {
			wrong++
			result = answer.Errors[0].Field + " " + answer.Errors[0].Reason + ": " + answer.Errors[0].Remedy
		} else if !answer.Created {
			result = "exists already"
			delete(fields, id)
		}
		items = append(items, importedFeed{id, feed.Title, feed.URL, result})
		rows = append(rows, []any{id, feed.Title, result, table.Excerpt(feed.URL)})
	}
	if wrong == 0 && !m.act.DryRun {
		for _, feed := range feeds {
			if source, ok := fields[feed.ID]; ok {
				if _, err := pg.Decode[pg.SourceAnswer](store.PutSource(ctx, m.act, feed.ID, source)); err != nil {
					return err
				}
			}
		}
	}
	if err := (output{asJSON: m.asJSON}).rows(items, table.Table{Columns: []string{"source_id", "title", "result", "url"}, Rows: rows}); err != nil {
		return err
	}
	switch {
	case wrong > 0:
		return fmt.Errorf("nothing was changed: %d of %s wrong", wrong, counted(len(feeds), "feed"))
	case m.act.DryRun:
		note("dry run: nothing was changed")
	default:
		note("%d of %s new", len(fields), counted(len(feeds), "feed"))
	}
	return nil
}

// sourcesByURL returns the source ids by URL.
func sourcesByURL(ctx context.Context, store *pg.Store, workspace string) (map[string]string, error) {
	list, err := store.ListSources(ctx, workspace, listLimit)
	if err != nil {
		return nil, err
	}
	known := map[string]string{}
	for _, s := range list {
		var config struct{ URL string }
		if json.Unmarshal(s.Config, &config) == nil && config.URL != "" {
			known[config.URL] = s.SourceID
		}
	}
	return known, nil
}

// feedFields returns the source of a feed: the common configuration, its URL and its tags.
func feedFields(feed opml.Feed, common json.RawMessage) (pg.SourceFields, error) {
	config := map[string]any{}
	if common != nil {
		if err := json.Unmarshal(common, &config); err != nil {
			return pg.SourceFields{}, err
		}
	}
	config["url"] = feed.URL
	tags, _ := config["tags"].([]any)
	for _, tag := range feed.Tags {
		tags = append(tags, tag)
	}
	if len(tags) > 0 {
		config["tags"] = tags
	}
	raw, err := json.Marshal(config)
	return pg.SourceFields{Kind: "rss", Config: raw}, err
}
