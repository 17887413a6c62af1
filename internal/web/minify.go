package web

import (
	"bytes"
	"cmp"
	"maps"
	"regexp"
	"slices"
)

// blanks are comments and spaces without meaning, in the way that our stylesheets are written.
var blanks = regexp.MustCompile(`(?s)/\*.*?\*/|\s*;?\s*(})\s*|\s*([{};,>])\s*|(:) |\s+`)

// minified returns a stylesheet without its blanks and with short names of its custom properties.
func minified(sheet []byte) []byte {
	sheet = blanks.ReplaceAllFunc(sheet, func(blank []byte) []byte {
		switch kept := bytes.TrimSpace(blank); {
		case bytes.HasPrefix(kept, []byte("/*")):
			return nil
		case len(kept) == 0:
			return []byte(" ")
		case bytes.HasSuffix(kept, []byte("}")):
			return []byte("}")
		default:
			return kept
		}
	})
	return shortened(sheet)
}

var (
	property   = regexp.MustCompile(`--[a-z][a-z0-9-]*`)
	definition = regexp.MustCompile(`(--[a-z][a-z0-9-]*):([^;{}]*)`)
)

// reference is the length of a reference to a property with a short name.
const reference = len("var(--a)")

// shortened writes the values of properties of the first rule, which no other rule changes, in place of references where
// that is not longer. The other properties get short names, the most frequent ones first. Only stylesheets use the names.
func shortened(sheet []byte) []byte {
	defined := map[string]int{}
	for _, m := range definition.FindAllSubmatch(sheet, -1) {
		defined[string(m[1])]++
	}
	root, _, _ := bytes.Cut(sheet, []byte("}"))
	for _, m := range definition.FindAllSubmatch(root, -1) {
		if name, value := m[1], m[2]; defined[string(name)] == 1 && len(value) <= reference && !bytes.Contains(value, []byte("--")) {
			sheet = bytes.Replace(sheet, slices.Concat(m[0], []byte(";")), nil, 1)
			sheet = bytes.ReplaceAll(sheet, slices.Concat([]byte("var("), name, []byte(")")), value)
		}
	}
	uses := map[string]int{}
	for _, name := range property.FindAll(sheet, -1) {
		uses[string(name)]++
	}
	short := map[string][]byte{}
	for n, name := range slices.SortedFunc(maps.Keys(uses), func(a, b string) int { return cmp.Or(cmp.Compare(uses[b], uses[a]), cmp.Compare(a, b)) }) {
		short[name] = []byte("--" + shortName(n))
	}
	return property.ReplaceAllFunc(sheet, func(name []byte) []byte { return short[string(name)] })
}

// shortName returns the n-th short name: a, b, … z, A, … Z, aa, ….
func shortName(n int) string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	if n < len(letters) {
		return letters[n : n+1]
	}
	return shortName(n/len(letters)-1) + letters[n%len(letters):n%len(letters)+1]
}
