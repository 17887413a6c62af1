package item

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// The reasons to mark an item as seen without publishing it.
const (
	reasonEmpty    = "empty"
	reasonBackfill = "backfill"
	reasonInclude  = "include"
	reasonExclude  = "exclude"
)

// matcher is one element of include or exclude: a keyword, which ignores case, or /a regular expression/ in RE2 syntax.
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
			return nil, BadConfig(key, "must not contain an empty string; remove it")
		}
		if len(word) < 3 || word[0] != '/' || word[len(word)-1] != '/' {
			list = append(list, matcher{keyword: strings.ToLower(word)})
			continue
		}
		pattern, err := regexp.Compile(word[1 : len(word)-1])
		if err != nil {
			return nil, BadConfig(key, fmt.Sprintf("must contain valid regular expressions, got %s: %v; write RE2 syntax, with (?i) in front to ignore case", word, err))
		}
		list = append(list, matcher{pattern: pattern})
	}
	return list, nil
}

// filter selects the entries of a source.
type filter struct{ include, exclude []matcher }

// refuses returns the reason to drop an entry; "" if it passes.
func (f filter) refuses(e Entry) string {
	if len(f.include)+len(f.exclude) == 0 {
		return ""
	}
	// Each part is matched alone, so ^ and $ match its ends.
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
