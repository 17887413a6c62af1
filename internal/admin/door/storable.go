package door

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// maxDigits and maxExponent keep numbers within what the database takes.
const (
	maxDigits   = 1000
	maxExponent = 308
)

// unstorable names the first value of a JSON body that the database could not keep; nil where there is none.
func unstorable(body []byte) *Problem {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var value any
	_ = decoder.Decode(&value) // an empty one has nothing; all else was found to be JSON
	return unstorableAt("", value)
}

func unstorableAt(at string, value any) *Problem {
	switch value := value.(type) {
	case string:
		if strings.ContainsRune(value, 0) {
			return wrong(orBody(at), "contains the NUL character", "remove the character")
		}
	case json.Number:
		_, exponent, _ := strings.Cut(strings.ToLower(value.String()), "e")
		if e, err := strconv.Atoi(exponent); exponent != "" && (err != nil || max(e, -e) > maxExponent) || len(value) > maxDigits {
			return wrong(orBody(at), "is a number out of range", "send it as a string")
		}
	case []any:
		for i, item := range value {
			if problem := unstorableAt(fmt.Sprintf("%s[%d]", at, i), item); problem != nil {
				return problem
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if strings.ContainsRune(key, 0) {
				return wrong(orBody(at), "has a field whose name contains the NUL character", "remove the character")
			}
			if problem := unstorableAt(strings.TrimPrefix(at+"."+key, "."), value[key]); problem != nil {
				return problem
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
