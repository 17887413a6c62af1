package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"autopost/internal/ingest/pull/subscriptions"
	"autopost/internal/pg"
)

func sourceImportCommand() *cobra.Command {
	var m manual
	var f sourceFlags
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Make a source of each feed of an OPML or CSV file",
		Long: `Make a source of each feed that an OPML file or a CSV with the columns url, title
and tags names; "-" reads standard input. All are tried first, and nothing is
written when one of them is wrong. A feed that is a source already stays as it is,
so that the same file may be imported again. --interval, --backfill, --template,
--tag, --include and --exclude hold for all.`,
		Args: oneArgument("file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			feeds, err := readFeeds(args[0])
			if err != nil {
				return err
			}
			if f.kind != "" || f.url != "" {
				return misuse{errors.New("an import makes sources of kind rss with the urls of the file: leave out --kind and --url")}
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

func readFeeds(name string) ([]subscriptions.Feed, error) {
	file := os.Stdin
	if name != "-" {
		var err error
		if file, err = os.Open(name); err != nil {
			return nil, misuse{err}
		}
		defer func() { _ = file.Close() }()
	}
	raw, err := io.ReadAll(io.LimitReader(file, subscriptions.MaxBytes+1))
	if err != nil {
		return nil, misuse{err}
	}
	if len(raw) > subscriptions.MaxBytes {
		return nil, misuse{fmt.Errorf("%s is larger than %d bytes: part it", name, subscriptions.MaxBytes)}
	}
	feeds, err := subscriptions.Read(raw)
	if err != nil {
		return nil, misuse{fmt.Errorf("%s: %w", name, err)}
	}
	return feeds, nil
}

// importFeeds tries all feeds that are no sources yet, then makes them.
func (m *manual) importFeeds(ctx context.Context, store *pg.Store, feeds []subscriptions.Feed, common json.RawMessage) error {
	there, err := sourcesByURL(ctx, store, m.act.Workspace)
	if err != nil {
		return err
	}
	rows := make([][]any, 0, len(feeds))
	fields := map[string]pg.SourceFields{}
	wrong := 0
	try := m.act
	try.DryRun = true
	for _, feed := range feeds {
		what, id := "new", feed.ID
		if as, ok := there[feed.URL]; ok {
			what, id = "is there already", as
		} else if fields[id], err = feedFields(feed, common); err != nil {
			return err
		} else if answer, err := store.PutSource(ctx, try, id, fields[id]); err != nil {
			return err
		} else if len(answer.Errors) > 0 {
			wrong++
			what = answer.Errors[0].Field + " " + answer.Errors[0].Reason + ": " + answer.Errors[0].Remedy
		} else if !answer.Created {
			what = "is there already"
			delete(fields, id)
		}
		rows = append(rows, []any{id, feed.Title, feed.URL, what})
	}
	if wrong == 0 && !m.act.DryRun {
		for _, feed := range feeds {
			if made, ok := fields[feed.ID]; ok {
				if _, err := store.PutSource(ctx, m.act, feed.ID, made); err != nil {
					return err
				}
			}
		}
	}
	if err := printTable(os.Stdout, m.asJSON, []string{"source", "title", "url", "result"}, rows); err != nil {
		return err
	}
	switch {
	case wrong > 0:
		return fmt.Errorf("nothing was changed: %d of %d feeds are wrong", wrong, len(feeds))
	case m.act.DryRun:
		fmt.Fprintln(os.Stderr, "autopost: dry run: nothing was changed")
	default:
		fmt.Fprintf(os.Stderr, "autopost: %d of %d feeds are new sources\n", len(fields), len(feeds))
	}
	return nil
}

// sourcesByURL are the ids of the feeds that are sources already.
func sourcesByURL(ctx context.Context, store *pg.Store, workspace string) (map[string]string, error) {
	list, err := store.ListSources(ctx, workspace, maxSources)
	if err != nil {
		return nil, err
	}
	there := map[string]string{}
	for _, s := range list {
		var config struct{ URL string }
		if json.Unmarshal(s.Config, &config) == nil && config.URL != "" {
			there[config.URL] = s.SourceID
		}
	}
	return there, nil
}

// feedFields are the source of a feed: what holds for all, its address, its tags.
func feedFields(feed subscriptions.Feed, common json.RawMessage) (pg.SourceFields, error) {
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
