package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"autopost/internal/ingest/pull/shape"
)

// pointer is a JSON pointer (RFC 6901), taken apart.
type pointer []string

var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// parsePointer reads a pointer; "" stands for the whole document.
func parsePointer(key, text string) (pointer, error) {
	if text == "" {
		return nil, nil
	}
	if text[0] != '/' {
		return nil, shape.BadConfig(key, fmt.Sprintf("must be a JSON pointer; write %q", "/"+strings.ReplaceAll(text, ".", "/")))
	}
	segments := strings.Split(text[1:], "/")
	for i, s := range segments {
		if strings.Contains(strings.NewReplacer("~0", "", "~1", "").Replace(s), "~") {
			return nil, shape.BadConfig(key, "holds a ~ that is neither ~0 nor ~1; write ~0 for it")
		}
		segments[i] = unescape.Replace(s)
	}
	return segments, nil
}

// in finds what the pointer names; nil where it names nothing.
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

// text is a string, a number or a truth value as text; "" for anything else.
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

// texts are the texts of an array, or those of one string parted by commas.
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

// maxKeys is how many keys a failure names.
const maxKeys = 20

// keysOf tells what there is instead of what was looked for.
func keysOf(value any) string {
	switch v := value.(type) {
	case map[string]any:
		keys := slices.Sorted(maps.Keys(v))
		for i, key := range keys {
			keys[i] = shape.Shorten(shape.Clean(key), 50)
		}
		return "the keys " + strings.Join(keys[:min(len(keys), maxKeys)], ", ")
	case []any:
		return fmt.Sprintf("an array of %d", len(v))
	case nil:
		return "nothing"
	}
	return "a single value"
}
