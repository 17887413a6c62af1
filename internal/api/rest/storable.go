package rest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"autopost/internal/problem"
)

// maxValues bounds the memory of a request. maxDigits and maxExponent are below the limits of numbers in the database.
const (
	maxValues   = 20_000
	maxDigits   = 1000
	maxExponent = 308
)

// unstorable refuses a JSON body with a value that the database cannot store; nil means that it has none.
func unstorable(body []byte) *problem.Problem {
	if values(body) > maxValues {
		return wrong("body", fmt.Sprintf("must have at most %d values", maxValues), "send several requests")
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var value any
	_ = decoder.Decode(&value) // the body is empty or valid JSON
	return unstorableAt("", value)
}

// values counts the commas and brackets of valid JSON: about one a value. Values need much more memory than their text.
func values(body []byte) (n int) {
	for i, quoted := 0, false; i < len(body); i++ {
		switch c := body[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ',' || c == '[' || c == '{'):
			n++
		}
	}
	return n
}

func unstorableAt(at string, value any) *problem.Problem {
	switch value := value.(type) {
	case string:
		if strings.ContainsRune(value, 0) {
			return wrong(orBody(at), "must not contain the NUL character", "remove the character")
		}
	case json.Number:
		_, exponent, _ := strings.Cut(strings.ToLower(value.String()), "e")
		if e, err := strconv.Atoi(exponent); exponent != "" && (err != nil || max(e, -e) > maxExponent) || len(value) > maxDigits {
			return wrong(orBody(at), "must be a number with at most 1000 digits and an exponent of at most 308", "send it as a string")
		}
	case []any:
		for i, item := range value {
			if wrong := unstorableAt(fmt.Sprintf("%s[%d]", at, i), item); wrong != nil {
				return wrong
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if strings.ContainsRune(key, 0) {
				return wrong(orBody(at), "must have no field with the NUL character in its name", "remove the character")
			}
			if wrong := unstorableAt(strings.TrimPrefix(at+"."+key, "."), value[key]); wrong != nil {
				return wrong
			}
		}
	}
	return nil
}

func orBody(at string) string {
	if at == "" {
		return "body"
	}
	return at
}
