package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"

	"github.com/spf13/cobra"

	"autopost/internal/api"
	"autopost/internal/config"
	"autopost/internal/daemon"
	"autopost/internal/outbound"
	"autopost/internal/pg"
	"autopost/internal/table"
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
				return trySource(ctx, cfg, store, read, args, fields)
			})
		},
	}
	f.flags(cmd)
	read.add(cmd)
	return cmd
}

// trySource polls a stored source, or the source of the flags.
func trySource(ctx context.Context, cfg config.Config, store *pg.Store, read readFlags, args []string, fields pg.SourceFields) error {
	workspace, err := chooseWorkspace(ctx, store, read.workspace)
	if err != nil {
		return err
	}
	vault, err := daemon.NewVault(cfg, store, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	tester := daemon.SourceTester{Store: store, Fetchers: daemon.Fetchers(outbound.GuardedConfig{Allow: cfg.OutboundAllow, Timeout: cfg.DownloadTimeout}, vault)}
	id, given := "", map[string]any{}
	if len(args) == 1 {
		id = args[0]
	} else if err := json.Unmarshal(fields.Config, &given); err != nil {
		return err
	}
	found, err := tester.TestSource(ctx, workspace, id, cmp.Or(fields.Kind, "rss"), given)
	if err != nil {
		return err
	}
	if found == nil {
		return unknownSource(id)
	}
	if read.output.asJSON {
		if err := printJSON(found); err != nil {
			return err
		}
	} else if err := printTrial(found, read.output); err != nil {
		return err
	}
	if !found.OK {
		return errSilent
	}
	return nil
}

func printTrial(t *api.SourceTrial, out output) error {
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
		rows = append(rows, []any{instantOr(item.PublishedAt, "no date"), resultOf(item), table.Excerpt(item.Text), item.Tags, len(item.Media), table.Excerpt(item.SourceRef)})
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

// resultOf returns what a poll would do with an item, with the reason if it publishes nothing.
func resultOf(i api.TriedItem) table.Word {
	if i.Skip == "" {
		return "publish"
	}
	return table.Word("skip: " + i.Skip)
}
