package jsonapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"autopost/internal/ingest/pull/item"
)

// pointer is the segments of a JSON pointer (RFC 6901).
type pointer []string

var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// parsePointer parses a pointer; "" means the whole document.
func parsePointer(key, text string) (pointer, error) {
	if text == "" {
		return nil, nil
	}
	if text[0] != '/' {
		return nil, item.BadConfig(key, fmt.Sprintf("must be a JSON pointer; write %q", "/"+strings.ReplaceAll(text, ".", "/")))
	}
	segments := strings.Split(text[1:], "/")
	for i, s := range segments {
		if strings.Contains(strings.NewReplacer("~0", "", "~1", "").Replace(s), "~") {
			return nil, item.BadConfig(key, "must contain ~ only in ~0 and ~1; write ~0 for ~")
		}
		segments[i] = unescape.Replace(s)
	}
	return segments, nil
}

// in returns the value at the pointer; nil if there is none.
func (p pointer) in(value any) any {
	for _, segment := range p {
		switch at := value.(type) {
		case map[string]any:
			value = at[segment]
		case []any:
			i, err := strconv.Atoi(segment)
			if err != nil || i < 0 || i >= len(at) {
				return nil
			}
			value = at[i]
		default:
			return nil
		}
	}
	return value
}

// text returns a string, a number or a boolean as text; "" for other values.
func text(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	case bool:
		return strconv.FormatBool(v)
	}
	return ""
}

// texts returns the texts of an array, or the parts of one string between commas.
func texts(value any) []string {
	if one := text(value); one != "" {
		return strings.Split(one, ",")
	}
	var list []string
	if many, ok := value.([]any); ok {
		for _, v := range many {
			if s := text(v); s != "" {
				list = append(list, s)
			}
		}
	}
	return list
}

// maxKeys is how many keys a message lists.
const maxKeys = 20

// keysOf describes a value for a message about a wrong pointer.
func keysOf(value any) string {
	switch v := value.(type) {
	case map[string]any:
		keys := slices.Sorted(maps.Keys(v))
		for i, key := range keys {
			keys[i] = item.Shorten(item.Clean(key), 50)
		}
		return "the keys " + strings.Join(keys[:min(len(keys), maxKeys)], ", ")
	case []any:
		return fmt.Sprintf("an array of %d", len(v))
	case nil:
		return "nothing"
	}
	return "a single value"
}
