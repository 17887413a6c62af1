package configfile

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// idColumn is the column with the id of the channel.
const idColumn = "channel_id"

// columns returns the columns that a table of channels may have.
func columns() []string { return append([]string{idColumn}, KindOf("channel").Names()...) }

// ReadTable reads channels from comma-separated values. The first row names the columns.
// The name of the file is used in errors. An empty cell leaves the field as it is.
func ReadTable(name string, from io.Reader) ([]Item, error) {
	reader := csv.NewReader(from)
	header, err := reader.Read()
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s must not be empty: name the columns in the first row, of %s", name, strings.Join(columns(), ", "))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	header[0] = strings.TrimPrefix(header[0], "\ufeff")
	if err := checkHeader(name, header); err != nil {
		return nil, err
	}
	var items []Item
	seen := map[string]int{}
	for {
		cells, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return items, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		item, err := readRow(name, header, cells, reader)
		if err != nil {
			return nil, err
		}
		if first, twice := seen[item.ID]; twice {
			return nil, fmt.Errorf("%s: channel %s must appear only once, it is also in line %d", item.At, item.ID, first)
		}
		seen[item.ID] = item.At.Line
		items = append(items, item)
	}
}

func checkHeader(name string, header []string) error {
	for i, column := range header {
		if !slices.Contains(columns(), column) {
			return Unknown(Place{File: name, Line: 1, Column: i + 1}, "column", column, columns())
		}
		if slices.Index(header, column) < i {
			return fmt.Errorf("%s: column %s must appear only once", Place{File: name, Line: 1, Column: i + 1}, column)
		}
	}
	if !slices.Contains(header, idColumn) {
		return fmt.Errorf("%s: column %s is missing: add it", Place{File: name, Line: 1}, idColumn)
	}
	return nil
}

func readRow(name string, header, cells []string, reader *csv.Reader) (Item, error) {
	line, _ := reader.FieldPos(0)
	item := Item{Kind: "channel", Fields: map[string]json.RawMessage{}, At: Place{File: name, Line: line}, fields: map[string]Place{}}
	for i, cell := range cells {
		line, _ := reader.FieldPos(i)
		at := Place{File: name, Line: line, Column: i + 1}
		if header[i] == idColumn {
			item.ID = cell
			continue
		}
		if cell == "" {
			continue
		}
		field, _ := KindOf("channel").Field(header[i])
		value, err := field.Value(cell)
		if err != nil {
			return item, fmt.Errorf("%s: %w", at, err)
		}
		item.Fields[field.Name], item.fields[field.Name] = value, at
	}
	if item.ID == "" {
		return item, fmt.Errorf("%s: %s is missing: write the id of the channel", item.At, idColumn)
	}
	return item, nil
}
