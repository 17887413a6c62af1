package cli

import (
	"context"
	"encoding/json"
	"os"
	"time"

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
					rows = append(rows, sourceRow(s, f.asJSON))
				}
				return table.Print(os.Stdout, f.asJSON, []string{"source", "kind", "state", "url", "last_poll", "next_poll", "failures", "last_error", "items_seen"}, rows)
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
	f.add(cmd)
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

func sourceRow(s pg.SourceRow, asJSON bool) []any {
	var config struct{ URL string }
	_ = json.Unmarshal(s.Config, &config) // not every source has a URL
	lastError := ""
	if s.LastError != nil {
		lastError = s.LastError.Code + ": " + s.LastError.Message
	}
	if asJSON {
		return []any{s.SourceID, s.Kind, sourceState(s), config.URL, s.LastPollAt, s.NextPollAt, s.Failures, s.LastError, s.ItemsSeen}
	}
	return []any{s.SourceID, s.Kind, sourceState(s), excerptOf(config.URL), instantOr(s.LastPollAt, "never"), instantOr(s.NextPollAt, ""), s.Failures, lastError, s.ItemsSeen}
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
	detail := struct {
		Source     string          `json:"source"`
		Kind       string          `json:"kind"`
		State      string          `json:"state"`
		Stopped    *pg.PollError   `json:"stopped,omitempty"`
		Endpoint   *string         `json:"endpoint"`
		Config     json.RawMessage `json:"config_json"`
		LastPollAt *time.Time      `json:"last_poll_at"`
		NextPollAt *time.Time      `json:"next_poll_at"`
		Failures   int             `json:"failures"`
		LastError  *pg.PollError   `json:"last_error,omitempty"`
		MovedTo    *string         `json:"moved_to,omitempty"`
		ItemsSeen  int64           `json:"items_seen"`
	}{s.SourceID, s.Kind, sourceState(s), s.Stopped, s.EndpointID, s.Config, s.LastPollAt, s.NextPollAt, s.Failures, s.LastError, s.MovedTo, s.ItemsSeen}
	if asJSON {
		encoder := json.NewEncoder(os.Stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(detail)
	}
	raw, err := json.Marshal(detail)
	if err != nil {
		return err
	}
	rows, err := differences(json.RawMessage(`{}`), raw)
	if err != nil {
		return err
	}
	for i := range rows {
		rows[i] = []any{rows[i][0], rows[i][2]}
	}
	return table.Print(os.Stdout, false, []string{"field", "value"}, rows)
}
