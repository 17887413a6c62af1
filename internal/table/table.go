// Package table prints rows as a table or as JSON.
package table

import (
	"encoding/json"
	"io"

	pretty "github.com/jedib0t/go-pretty/v6/table"
)

// Print writes rows as a table, or as a JSON array of objects if asJSON is set.
func Print(w io.Writer, asJSON bool, columns []string, rows [][]any) error {
	if asJSON {
		objects := make([]map[string]any, 0, len(rows))
		for _, row := range rows {
			object := make(map[string]any, len(columns))
			for i, column := range columns {
				object[column] = row[i]
			}
			objects = append(objects, object)
		}
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(objects)
	}
	t := pretty.NewWriter()
	t.SetStyle(pretty.StyleLight)
	t.SetOutputMirror(w)
	header := make(pretty.Row, 0, len(columns))
	for _, column := range columns {
		header = append(header, column)
	}
	t.AppendHeader(header)
	for _, row := range rows {
		t.AppendRow(pretty.Row(row))
	}
	t.Render()
	return nil
}
