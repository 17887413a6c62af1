package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
	"autopost/internal/table"
)

// reading describes a list command over a list of the API. The items of its JSON are those of the API.
type reading struct {
	use, short, long, example string // use is list if it is empty
	function                  string // of the database, for example list_events
	argument                  string // the filter of the optional argument; "": no argument
	kind                      string // of list_configuration; "" for other functions
	filters                   []filterFlag
	columns                   []column
	// empty is the sentence for a list without rows.
	empty string
	// fixed returns filters that no flag sets; nil for none.
	fixed func() (map[string]any, error)
	// lastDay makes the last 24 hours the default of --since, because no index finds the rows of the other filters.
	lastDay func(filter map[string]any) bool
}

// filterFlag is a flag of a list command. Its value is the filter of the same name in the API.
type filterFlag struct {
	name, key, usage string
	// values are all accepted values; nil accepts any.
	values []string
}

// help returns the usage with the accepted values.
func (f filterFlag) help() string {
	if f.values == nil {
		return f.usage
	}
	return f.usage + ": " + oneOf(f.values) + " (default: all)"
}

// value checks the value of the flag.
func (f filterFlag) value(given string) (string, error) {
	if f.values != nil && !slices.Contains(f.values, given) {
		return "", usageError{fmt.Errorf("--%s must be %s, got %q", f.name, oneOf(f.values), given)}
	}
	if f.key != "since" {
		return given, nil
	}
	return parseSince(given)
}

// parseSince returns the instant of --since in RFC 3339: a time, or a duration before now.
func parseSince(given string) (string, error) {
	var back duration
	if back.Set(given) == nil {
		return time.Now().Add(-time.Duration(back)).Format(time.RFC3339Nano), nil
	}
	at, err := time.Parse(time.RFC3339, given)
	if err != nil {
		return "", usageError{fmt.Errorf("--since must be a duration or a time with an offset, got %q: write 2h, 1d or 2026-12-01T10:00:00+03:00", given)}
	}
	return at.Format(time.RFC3339Nano), nil
}

// oneOf names the accepted values of a flag.
func oneOf(values []string) string {
	if len(values) == 1 {
		return values[0]
	}
	last := len(values) - 1
	return strings.Join(values[:last], ", ") + " or " + values[last]
}

// column shows a part of a row to a person.
type column struct {
	name string
	of   func(row map[string]any) any
	// detail columns are left out of a narrow table.
	detail bool
}

// detail returns the column as one that a narrow table leaves out.
func detail(c column) column {
	c.detail = true
	return c
}

// fieldColumn shows one field of a row.
func fieldColumn(name, field string) column {
	return column{name: name, of: func(row map[string]any) any {
		if number, ok := row[field].(float64); ok && number == float64(int64(number)) {
			return int64(number)
		}
		return plainText(row[field])
	}}
}

// excerptColumn is the column text with the beginning of a text.
func excerptColumn(field string) column {
	return column{name: "text", of: func(row map[string]any) any {
		text, _ := row[field].(string)
		return table.Excerpt(text)
	}}
}

// timeColumn shows an instant.
func timeColumn(name, field string) column {
	return column{name: name, of: func(row map[string]any) any { return instantOf(row, field) }}
}

// instantOf returns the instant in a field, nil without one.
func instantOf(row map[string]any, field string) *time.Time {
	text, _ := row[field].(string)
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return nil
	}
	return &at
}

// errorColumn shows the code and the message of an error.
func errorColumn(name, field string) column {
	return column{name: name, of: func(row map[string]any) any { return errorText(row[field]) }}
}

func errorText(value any) string {
	failure, _ := value.(map[string]any)
	return strings.TrimSuffix(plainText(failure["code"])+": "+plainText(failure["message"]), ": ")
}

// command builds the command. after, if not nil, runs after the list was printed for a person.
func (r reading) command(after func(context.Context, *pg.Store, string) error) *cobra.Command {
	var f readFlags
	var limit int
	values := make([]string, len(r.filters))
	cmd := &cobra.Command{
		Use: cmp.Or(r.use, "list"), Short: r.short, Long: r.long, Example: r.example, Args: noArguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			filter := map[string]any{}
			for _, given := range args {
				filter[r.argument] = given
			}
			for i, flag := range r.filters {
				if values[i] == "" {
					continue
				}
				value, err := flag.value(values[i])
				if err != nil {
					return err
				}
				filter[flag.key] = value
			}
			if r.lastDay != nil && filter["since"] == nil && r.lastDay(filter) {
				filter["since"] = time.Now().Add(-24 * time.Hour).Format(time.RFC3339)
			}
			filtered := len(filter) > 0
			if r.fixed != nil {
				more, err := r.fixed()
				if err != nil {
					return err
				}
				maps.Copy(filter, more)
			}
			return f.run(cmd, func(ctx context.Context, store *pg.Store, workspace string) error {
				list, err := store.List(ctx, pg.Query{Function: r.function, Kind: r.kind, Workspace: workspace, Filter: filter, Limit: limit})
				if err != nil {
					return err
				}
				if err := r.print(list, filtered, f.output); err != nil || f.asJSON || after == nil {
					return err
				}
				return after(ctx, store, workspace)
			})
		},
	}
	if r.argument != "" {
		cmd.Use += " [" + strings.ToUpper(strings.TrimSuffix(r.argument, "_id")) + "]"
		cmd.Args = atMostOneArgument(strings.TrimSuffix(r.argument, "_id"))
	}
	for i, flag := range r.filters {
		cmd.Flags().StringVar(&values[i], flag.name, "", flag.help())
		if flag.values != nil {
			completeFlag(cmd, flag.name, flag.values)
		}
	}
	limitFlag(cmd, &limit)
	f.add(cmd)
	return cmd
}

func (r reading) print(list []json.RawMessage, filtered bool, out output) error {
	rows := table.Table{Empty: r.empty}
	if filtered {
		rows.Empty = "No row matches: leave out a filter to see more."
	}
	for _, c := range r.columns {
		rows.Columns = append(rows.Columns, c.name)
		if c.detail {
			rows.Details = append(rows.Details, c.name)
		}
	}
	for _, raw := range list {
		var row map[string]any
		if err := json.Unmarshal(raw, &row); err != nil {
			return fmt.Errorf("decode a row of %s: %w", r.function, err)
		}
		cells := make([]any, 0, len(r.columns))
		for _, c := range r.columns {
			cells = append(cells, c.of(row))
		}
		rows.Rows = append(rows.Rows, cells)
	}
	return out.rows(list, rows)
}

var sinceFlag = filterFlag{name: "since", key: "since", usage: "only from this `time` on: 2h, 1d or 2026-12-01T10:00:00+03:00"}
