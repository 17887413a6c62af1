package item

import (
	"fmt"

	"autopost/internal/ingest/pull"
)

// The limits of one poll are far above real sources. Without them a small document can fill the memory: a long base
// address is copied into each reference, and each empty item costs hundreds of bytes.
const (
	// MaxAddress is the longest address in bytes.
	MaxAddress = 8 << 10
	// MaxItems is the most items of one document.
	MaxItems = 10_000
	// maxTexts is the most text that one poll may make, in bytes.
	maxTexts = 16 << 20
	// maxValues is the most values of a JSON document. A value needs up to a hundred bytes.
	maxValues = 200_000
)

// TooLarge returns the failure for a document that exceeds a limit.
func TooLarge(format string, args ...any) *pull.Failure {
	return &pull.Failure{Code: "pull_too_large", Message: fmt.Sprintf(format, args...)}
}

// CheckJSON rejects a JSON document with too many values to keep them in memory. It does not check the syntax.
func CheckJSON(document []byte) error {
	values, quoted := 0, false
	for i := 0; i < len(document); i++ {
		switch c := document[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ',' || c == '[' || c == '{'):
			values++
		}
	}
	if values > maxValues {
		return TooLarge("the JSON must have at most %d values", maxValues)
	}
	return nil
}
