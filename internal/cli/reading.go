package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
	"autopost/internal/table"
)

// reading describes a list command over a list of the API. Its JSON is that of the API.
type reading struct {
	short, example string
	function       string // of the database, for example list_events
	kind           string // of list_configuration; "" for other functions
	filters        []filterFlag
	columns        []column
	// lastDay makes the last 24 hours the default of --since, because no index finds the rows of the other filters.
	lastDay func(filter map[string]any) bool
}

// filterFlag is a flag of a list command. Its value is the filter of the same name in the API.
type filterFlag struct{ name, key, usage string }

// column shows a part of a row to a person.
type column struct {
	name string
	of   func(row map[string]any) string
}

// fieldColumn shows one field of a row.
func fieldColumn(name, field string) column {
	return column{name, func(row map[string]any) string { return textOfField(row[field]) }}
}

func textOfField(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return excerptOf(v)
	case float64:
		return fmt.Sprint(v)
	default:
		raw, err := json.Marshal(v)
		if err != nil {
			return fmt.Sprint(v)
		}
		return excerptOf(string(raw))
	}
}

// timeColumn shows an instant in the local time zone.
func timeColumn(name, field string) column {
	return column{name, func(row map[string]any) string {
		text, _ := row[field].(string)
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return ""
		}
		return at.Local().Format("2006-01-02 15:04:05 MST")
	}}
}

// errorColumn shows the code and the message of an error.
func errorColumn(name, field string) column {
	return column{name, func(row map[string]any) string {
		failure, _ := row[field].(map[string]any)
		return excerptOf(strings.TrimSuffix(textOfField(failure["code"])+": "+textOfField(failure["message"]), ": "))
	}}
}

// command builds the command. after, if not nil, runs after the list was printed for a person.
func (r reading) command(after func(context.Context, *pg.Store, string) error) *cobra.Command {
	var f readFlags
	var limit int
	values := make([]string, len(r.filters))
	cmd := &cobra.Command{
		Use: "list", Short: r.short, Example: r.example, Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			filter := map[string]any{}
			for i, flag := range r.filters {
				if values[i] != "" {
					filter[flag.key] = values[i]
				}
			}
			if r.lastDay != nil && filter["since"] == nil && r.lastDay(filter) {
				filter["since"] = time.Now().Add(-24 * time.Hour).Format(time.RFC3339)
			}
			return f.run(cmd, func(ctx context.Context, store *pg.Store, workspace string) error {
				list, err := store.List(ctx, pg.Query{Function: r.function, Kind: r.kind, Workspace: workspace, Filter: filter, Limit: limit})
				if err != nil {
					return err
				}
				if err := r.print(list, f.asJSON); err != nil || f.asJSON || after == nil {
					return err
				}
				return after(ctx, store, workspace)
			})
		},
	}
	for i, flag := range r.filters {
		cmd.Flags().StringVar(&values[i], flag.name, "", flag.usage)
	}
	limitFlag(cmd, &limit)
	f.add(cmd)
	return cmd
}

func (r reading) print(list []json.RawMessage, asJSON bool) error {
	if asJSON {
		encoder := json.NewEncoder(os.Stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(list)
	}
	columns := make([]string, len(r.columns))
	for i, c := range r.columns {
		columns[i] = c.name
	}
	rows := make([][]any, len(list))
	for i, raw := range list {
		var row map[string]any
		if err := json.Unmarshal(raw, &row); err != nil {
			return fmt.Errorf("decode a row of %s: %w", r.function, err)
		}
		for _, c := range r.columns {
			rows[i] = append(rows[i], c.of(row))
		}
	}
	return table.Print(os.Stdout, false, columns, rows)
}

var sinceFlag = filterFlag{"since", "since", "only from this time on, in RFC 3339"}
