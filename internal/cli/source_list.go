package cli

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
	"autopost/internal/table"
)

func sourceListCommand() *cobra.Command {
	var f readFlags
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the sources and their polls",
		Example: "  autopost source list",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.withSources(cmd, func(list []pg.SourceRow) error {
				rows := make([][]any, 0, len(list))
				for _, s := range list {
					rows = append(rows, sourceRow(s))
				}
				return f.rows(list, table.Table{
					Columns: []string{"source_id", "kind", "state", "last_poll", "url", "next_poll", "failures", "last_error", "items_seen"},
					Details: []string{"url", "next_poll", "failures", "items_seen"}, Optional: []string{"last_error"}, Rows: rows,
					Empty: "No source: run autopost source add ID --url URL to publish a feed.",
				})
			})
		},
	}
	f.add(cmd)
	return cmd
}

func sourceShowCommand() *cobra.Command {
	var f readFlags
	cmd := &cobra.Command{
		Use:     "show ID",
		Short:   "Show the configuration and state of a source",
		Long:    "Show the configuration and state of a source. Secrets are masked.",
		Example: "  autopost source show news",
		Args:    oneArgument("source id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.withSources(cmd, func(list []pg.SourceRow) error {
				for _, s := range list {
					if s.SourceID == args[0] {
						return showSource(s, f.asJSON)
					}
				}
				return unknownSource(args[0])
			})
		},
	}
	f.addOne(cmd)
	return cmd
}

func unknownSource(id string) error { return unknown("source "+id, "autopost source list") }

func (f *readFlags) withSources(cmd *cobra.Command, work func([]pg.SourceRow) error) error {
	return f.run(cmd, func(ctx context.Context, store *pg.Store, workspace string) error {
		list, err := store.ListSources(ctx, workspace, listLimit)
		if err != nil {
			return err
		}
		return work(list)
	})
}

func sourceRow(s pg.SourceRow) []any {
	var config struct{ URL string }
	_ = json.Unmarshal(s.Config, &config) // not every source has a URL
	return []any{s.SourceID, s.Kind, sourceState(s), instantOr(s.LastPollAt, "never"), table.Excerpt(config.URL), s.NextPollAt, s.Failures, pollErrorText(s.LastError), s.ItemsSeen}
}

func pollErrorText(failure *pg.PollError) string {
	if failure == nil {
		return ""
	}
	return failure.Code + ": " + failure.Message
}

// sourceState returns whether a source is polled.
func sourceState(s pg.SourceRow) string {
	switch {
	case s.Stopped != nil:
		return "stopped: " + s.Stopped.Code
	case !s.Enabled:
		return "disabled"
	case !s.EndpointEnabled:
		return "no endpoint"
	}
	return "enabled"
}

func showSource(s pg.SourceRow, asJSON bool) error {
	if asJSON {
		return printJSON(s)
	}
	rows := [][]any{{"source_id", s.SourceID}, {"kind", s.Kind}, {"state", sourceState(s)}, {"endpoint_id", s.EndpointID}}
	config, err := objectRows(s.Config, nil)
	if err != nil {
		return err
	}
	rows = append(rows, config...)
	return printFields(append(rows, [][]any{
		{"last_poll", instantOr(s.LastPollAt, "never")}, {"next_poll", s.NextPollAt}, {"failures", s.Failures}, {"last_error", pollErrorText(s.LastError)},
		{"moved_to", s.MovedTo}, {"items_seen", s.ItemsSeen},
	}...))
}
