package blueprint

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Value reads what a person wrote for a field, as a flag or in a cell of a table, and returns its JSON.
// A list is written with commas between its texts, or as JSON.
func (f Field) Value(written string) (json.RawMessage, error) {
	switch f.Form {
	case Text:
		return json.Marshal(written)
	case Number:
		var n json.Number
		if err := json.Unmarshal([]byte(written), &n); err != nil || strings.HasPrefix(strings.TrimSpace(written), `"`) {
			return nil, fmt.Errorf("%s is %q, which is no number", f.Name, written)
		}
		return json.RawMessage(n), nil
	case Boolean:
		if written != "true" && written != "false" {
			return nil, fmt.Errorf("%s is %q: write true or false", f.Name, written)
		}
		return json.RawMessage(written), nil
	case List:
		if strings.HasPrefix(strings.TrimSpace(written), "[") {
			return jsonOf(f, written)
		}
		texts := []string{}
		for text := range strings.SplitSeq(written, ",") {
			if text = strings.TrimSpace(text); text != "" {
				texts = append(texts, text)
			}
		}
		return json.Marshal(texts)
	default:
		return jsonOf(f, written)
	}
}

func jsonOf(f Field, written string) (json.RawMessage, error) {
	if err := json.Unmarshal([]byte(written), new(any)); err != nil {
		var at *json.SyntaxError
		if errors.As(err, &at) {
			return nil, fmt.Errorf("%s is no JSON, at its character %d: %w", f.Name, at.Offset, err)
		}
		return nil, fmt.Errorf("%s is no JSON: %w", f.Name, err)
	}
	return json.RawMessage(written), nil
}
