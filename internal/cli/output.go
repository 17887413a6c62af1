package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"autopost/internal/table"
)

// output are the flags of a command that prints rows.
type output struct{ asJSON, wide bool }

func (o *output) add(cmd *cobra.Command) {
	jsonFlag(cmd, &o.asJSON)
	cmd.Flags().BoolVar(&o.wide, "wide", false, "print all columns, on lines of any length")
}

// rows prints rows as a table, or the items as {"items": […]}, like a list of the API.
func (o output) rows(items any, rows table.Table) error {
	if o.asJSON {
		return printItems(items)
	}
	width := terminalWidth()
	if o.wide {
		width = 0
	}
	hidden, err := rows.Print(os.Stdout, width)
	if len(hidden) > 0 {
		note("not shown: %s; add --wide", strings.ReplaceAll(strings.Join(hidden, ", "), "_", " "))
	}
	return err
}

// printItems prints the items of a list as {"items": […]}.
func printItems(items any) error {
	raw, err := json.Marshal(items)
	if err != nil {
		return fmt.Errorf("encode the items: %w", err)
	}
	if bytes.Equal(raw, []byte("null")) {
		raw = []byte("[]")
	}
	return printJSON(map[string]json.RawMessage{"items": raw})
}

// printJSON prints a value as indented JSON.
func printJSON(value any) error {
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

// printTable prints a table in the width of the terminal.
func printTable(columns []string, rows [][]any) error {
	_, err := table.Table{Columns: columns, Rows: rows}.Print(os.Stdout, terminalWidth())
	return err
}

// say prints a sentence in the width of the terminal.
func say(format string, args ...any) {
	fmt.Fprintln(os.Stdout, table.Wrap(table.Sentence(fmt.Sprintf(format, args...)), terminalWidth()))
}

// note prints a remark on standard error.
func note(format string, args ...any) {
	fmt.Fprintln(os.Stderr, table.Wrap(table.Sentence("autopost: "+fmt.Sprintf(format, args...)), terminalWidth()))
}

// terminalWidth returns the width of the terminal in columns. Without a terminal it is COLUMNS, or else 100.
func terminalWidth() int {
	if width, _, err := term.GetSize(int(os.Stdout.Fd())); err == nil && width > 0 {
		return width
	}
	if width, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && width > 0 {
		return width
	}
	return table.DefaultWidth
}

// instantOr returns a time for people, or none if it is nil.
func instantOr(at *time.Time, none string) string {
	if at == nil {
		return none
	}
	return table.Time(*at)
}

func textOr(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// counted returns a number with its noun, like "1 failure" and "2 failures". The plural may be given.
func counted[N int | int64](n N, noun string, plural ...string) string {
	many := noun + "s"
	if len(plural) > 0 {
		many = plural[0]
	}
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %s", n, many)
}

// singular returns the singular of a noun in the plural, like delivery.
func singular(nouns string) string {
	if stem, ok := strings.CutSuffix(nouns, "ies"); ok {
		return stem + "y"
	}
	return strings.TrimSuffix(nouns, "s")
}

func countedDeliveries[N int | int64](n N) string { return counted(n, "delivery", "deliveries") }

// plainText formats a decoded JSON value for people, without quotes and brackets.
func plainText(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	case bool:
		return table.Text(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case []any:
		parts, nested := make([]string, 0, len(v)), false
		for _, part := range v {
			switch part.(type) {
			case []any, map[string]any:
				nested = true
			}
			parts = append(parts, plainText(part))
		}
		if nested {
			return strings.Join(parts, "; ")
		}
		return strings.Join(parts, ", ")
	case map[string]any:
		parts := make([]string, 0, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, key+": "+plainText(v[key]))
		}
		return strings.Join(parts, "; ")
	}
	return fmt.Sprint(value)
}

// valueText formats a JSON value for people: texts without quotes, null as the empty text.
func valueText(raw json.RawMessage) string {
	var value any
	if len(raw) == 0 || json.Unmarshal(raw, &value) != nil {
		return string(raw)
	}
	return plainText(value)
}

// printObject prints a JSON object with one line for each field. The fields of the objects under the open keys
// are printed one by one, too.
func printObject(raw json.RawMessage, open ...string) error {
	rows, err := objectRows(raw, open)
	if err != nil {
		return err
	}
	return printFields(rows)
}

// printFields prints pairs of a name and a value, one below the other.
func printFields(rows [][]any) error {
	names := make([]string, 0, len(rows))
	values := make([]any, 0, len(rows))
	for _, row := range rows {
		names = append(names, row[0].(string))
		values = append(values, row[1])
	}
	if len(names) == 0 {
		return nil
	}
	return table.PrintRecord(os.Stdout, names, values, terminalWidth())
}

func objectRows(raw json.RawMessage, open []string) ([][]any, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(raw, &object); err != nil {
		return nil, fmt.Errorf("decode the answer: %w", err)
	}
	var rows [][]any
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if !slices.Contains(open, key) {
			rows = append(rows, []any{key, valueText(object[key])})
			continue
		}
		inner, err := objectRows(object[key], nil)
		if err != nil {
			return nil, err
		}
		rows = append(rows, inner...)
	}
	return rows, nil
}

// printChanges prints changed fields. It prints nothing without rows.
func printChanges(rows [][]any) error {
	if len(rows) == 0 {
		return nil
	}
	return printTable([]string{"field", "before", "after"}, rows)
}
