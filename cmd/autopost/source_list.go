package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
)

// maxSources is how many sources a list shows.
const maxSources = 10_000

func sourceListCommand() *cobra.Command {
	var workspace string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the sources: last poll, next poll, last error, items seen",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withSources(cmd, &workspace, func(list []pg.SourceRow) error {
				rows := make([][]any, 0, len(list))
				for _, s := range list {
					rows = append(rows, sourceRow(s, asJSON))
				}
				return printTable(os.Stdout, asJSON, []string{"source", "kind", "state", "url", "last_poll", "next_poll", "failures", "last_error", "items_seen"}, rows)
			})
		},
	}
	workspaceFlag(cmd, &workspace)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func sourceShowCommand() *cobra.Command {
	var workspace string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show a source: its configuration, keys masked, and where it stands",
		Args:  oneArgument("id of a source"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withSources(cmd, &workspace, func(list []pg.SourceRow) error {
				for _, s := range list {
					if s.SourceID == args[0] {
						return showSource(s, asJSON)
					}
				}
				return fmt.Errorf("there is no source %s: autopost source list shows them", args[0])
			})
		},
	}
	workspaceFlag(cmd, &workspace)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func withSources(cmd *cobra.Command, workspace *string, work func([]pg.SourceRow) error) error {
	return withStore(cmd.Context(), func(ctx context.Context, store *pg.Store) error {
		chosen, err := chooseWorkspace(ctx, store, *workspace)
		if err != nil {
			return err
		}
		list, err := store.ListSources(ctx, chosen, maxSources)
		if err != nil {
			return err
		}
		return work(list)
	})
}

func sourceRow(s pg.SourceRow, asJSON bool) []any {
	var config struct{ URL string }
	_ = json.Unmarshal(s.Config, &config) // a source without url has none to show
	lastError := ""
	if s.LastError != nil {
		lastError = s.LastError.Code + ": " + s.LastError.Message
	}
	if asJSON {
		return []any{s.SourceID, s.Kind, sourceState(s), config.URL, s.LastPollAt, s.NextPollAt, s.Failures, s.LastError, s.ItemsSeen}
	}
	return []any{s.SourceID, s.Kind, sourceState(s), excerptOf(config.URL), instantOr(s.LastPollAt, "never"), instantOr(s.NextPollAt, ""), s.Failures, lastError, s.ItemsSeen}
}

// sourceState says in words whether a source is polled.
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
	shown := struct {
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
		return encoder.Encode(shown)
	}
	raw, err := json.Marshal(shown)
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
	return printTable(os.Stdout, false, []string{"field", "value"}, rows)
}
