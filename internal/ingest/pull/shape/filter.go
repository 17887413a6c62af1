package shape

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Why an item is only marked as seen.
const (
	reasonEmpty    = "empty"
	reasonBackfill = "backfill"
	reasonInclude  = "include"
	reasonExclude  = "exclude"
)

// matcher is one word of include or exclude: a keyword, found regardless of case,
// or /a regular expression/ in RE2's syntax.
type matcher struct {
	keyword string
	pattern *regexp.Regexp
}

func (m matcher) matches(text string) bool {
	if m.pattern != nil {
		return m.pattern.MatchString(text)
	}
	return strings.Contains(strings.ToLower(text), m.keyword)
}

func compile(key string, words []string) ([]matcher, error) {
	list := make([]matcher, 0, len(words))
	for _, word := range words {
		word = strings.TrimSpace(word)
		if word == "" {
			return nil, BadConfig(key, "holds an empty string; remove it")
		}
		if len(word) < 3 || word[0] != '/' || word[len(word)-1] != '/' {
			list = append(list, matcher{keyword: strings.ToLower(word)})
			continue
		}
		pattern, err := regexp.Compile(word[1 : len(word)-1])
		if err != nil {
			return nil, BadConfig(key, fmt.Sprintf("holds the regular expression %s, which cannot be read: %v; write RE2 syntax, (?i) in front regardless of case", word, err))
		}
		list = append(list, matcher{pattern: pattern})
	}
	return list, nil
}

// filter is what a source lets through.
type filter struct{ include, exclude []matcher }

// refuses says which list keeps an entry back; "" for none.
func (f filter) refuses(e Entry) string {
	if len(f.include)+len(f.exclude) == 0 {
		return ""
	}
	// ^ and $ are the ends of a title, a text, a category.
	parts := append([]string{e.Title, e.Text}, e.Categories...)
	in := func(list []matcher) bool {
		return slices.ContainsFunc(list, func(m matcher) bool { return slices.ContainsFunc(parts, m.matches) })
	}
	switch {
	case in(f.exclude):
		return reasonExclude
	case len(f.include) > 0 && !in(f.include):
		return reasonInclude
	}
	return ""
}
