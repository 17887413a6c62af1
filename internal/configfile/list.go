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
func FormatList(rows []map[string]any) ([]byte, error) { return yaml.Marshal(rows) }
