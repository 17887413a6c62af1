package configfile

import (
	"encoding/json"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// ParseList reads a YAML or JSON list of rows. Each row is an object.
func ParseList(raw []byte) ([]map[string]json.RawMessage, error) {
	var rows []map[string]any
	if err := yaml.Unmarshal(raw, &rows); err != nil {
		return nil, fmt.Errorf("read a list of rows: %w", err)
	}
	encoded, err := json.Marshal(rows)
	if err != nil {
		return nil, fmt.Errorf("read a list of rows: %w", err)
	}
	var list []map[string]json.RawMessage
	return list, json.Unmarshal(encoded, &list)
}

// FormatList writes rows as a YAML list. The fields of a row are sorted.
func FormatList(rows []map[string]any) ([]byte, error) {
	encoded, err := json.Marshal(rows)
	if err != nil {
		return nil, fmt.Errorf("write a list of rows: %w", err)
	}
	var plain []map[string]any
	if err := json.Unmarshal(encoded, &plain); err != nil {
		return nil, fmt.Errorf("write a list of rows: %w", err)
	}
	return yaml.Marshal(plain)
}

// ListItems returns the rows of a list as items of a resource. idField names the id of a row. A field that a row leaves
// out gets its default, as in a file.
func ListItems(k Resource, idField string, rows []map[string]json.RawMessage) ([]Item, error) {
	items := make([]Item, 0, len(rows))
	seen := map[string]bool{}
	for i, row := range rows {
		item := Item{Kind: k.Name, Fields: map[string]json.RawMessage{}}
		if json.Unmarshal(row[idField], &item.ID) != nil || item.ID == "" {
			return nil, fmt.Errorf("%s %d must have a %s: name it", k.Name, i+1, idField)
		}
		if seen[item.ID] {
			return nil, fmt.Errorf("%s %s must be given once: write one version of it", k.Name, item.ID)
		}
		seen[item.ID] = true
		for _, f := range k.Fields {
			item.Fields[f.Name] = json.RawMessage("null")
		}
		for name, value := range row {
			if name != idField {
				item.Fields[name] = value
			}
		}
		items = append(items, item)
	}
	return items, nil
}
