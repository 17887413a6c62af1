package main

import (
	"encoding/json"
	"io"
	"os"

	"github.com/jedib0t/go-pretty/v6/table"
)

// printTable prints rows for a person, or as an array of JSON objects for a machine.
func printTable(w io.Writer, asJSON bool, columns []string, rows [][]any) error {
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
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.SetOutputMirror(w)
	header := make(table.Row, 0, len(columns))
	for _, column := range columns {
		header = append(header, column)
	}
	t.AppendHeader(header)
	for _, row := range rows {
		t.AppendRow(table.Row(row))
	}
	t.Render()
	return nil
}

// printChanges shows fields with what they were and are, if there are any.
func printChanges(rows [][]any) error {
	if len(rows) == 0 {
		return nil
	}
	return printTable(os.Stdout, false, []string{"field", "before", "after"}, rows)
}
