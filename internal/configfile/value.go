package configfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Value parses the text of a flag or table cell and returns JSON. A list is written as texts
// with commas between them, or as JSON.
func (f Field) Value(written string) (json.RawMessage, error) {
	switch f.Type {
	case Text:
		return json.Marshal(written)
	case Number:
		var n json.Number
		if err := json.Unmarshal([]byte(written), &n); err != nil || strings.HasPrefix(strings.TrimSpace(written), `"`) {
			return nil, fmt.Errorf("%s must be a number, got %q", f.Name, written)
		}
		return json.RawMessage(n), nil
	case Boolean:
		if written != "true" && written != "false" {
			return nil, fmt.Errorf("%s must be true or false, got %q", f.Name, written)
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
			return nil, fmt.Errorf("%s must be JSON, wrong at character %d: %w", f.Name, at.Offset, err)
		}
		return nil, fmt.Errorf("%s must be JSON: %w", f.Name, err)
	}
	return json.RawMessage(written), nil
}
