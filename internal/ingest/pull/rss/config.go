package rss

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"autopost/internal/ingest/pull"
)

const (
	defaultTemplate  = "{title}\n\n{link}"
	mediaEnclosures  = "enclosures"
	mediaNone        = "none"
	maxIntervalSecs  = 7 * 24 * 3600
	maxBackfillItems = 1000
)

// config is the config_json of a source.
type config struct {
	url      *url.URL
	backfill int
	template string
	tags     []string
	media    string
	include  []string
	exclude  []string
}

var placeholder = regexp.MustCompile(`\{[A-Za-z_]*\}`)

// placeholders are what a template may name.
var placeholders = []string{"{title}", "{link}", "{summary}", "{author}", "{categories}"}

// parseConfig reads config_json. What is wrong is named with its key and remedy.
func parseConfig(raw json.RawMessage) (config, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil || fields == nil {
		return config{}, badConfig("config_json", `must be a JSON object; write {"url": "https://…"}`)
	}
	// Read as given and checked here; the database acts on it.
	var interval = 300
	var address string
	c := config{template: defaultTemplate, media: mediaEnclosures}
	known := map[string]struct {
		into any
		must string
	}{
		"url":              {&address, "a string"},
		"interval_seconds": {&interval, "a whole number of seconds"},
		"backfill_items":   {&c.backfill, "a whole number of items"},
		"template":         {&c.template, "a string"},
		"tags":             {&c.tags, `an array of strings; write ["…"]`},
		"media":            {&c.media, "a string"},
		"include":          {&c.include, `an array of strings; write ["…"]`},
		"exclude":          {&c.exclude, `an array of strings; write ["…"]`},
	}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		field, ok := known[key]
		if !ok {
			return config{}, badConfig(key, "is unknown; remove it or use one of "+strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
		if err := json.Unmarshal(fields[key], field.into); err != nil {
			return config{}, badConfig(key, "must be "+field.must)
		}
	}
	if interval < 1 || interval > maxIntervalSecs {
		return config{}, badConfig("interval_seconds", fmt.Sprintf("must be 1 to %d", maxIntervalSecs))
	}
	var err error
	if c.url, err = url.Parse(address); err != nil || c.url.Host == "" || (c.url.Scheme != "http" && c.url.Scheme != "https") {
		return config{}, badConfig("url", "must be the feed's whole http or https URL")
	}
	return c, c.validate()
}

func (c *config) validate() error {
	if c.backfill < 0 || c.backfill > maxBackfillItems {
		return badConfig("backfill_items", fmt.Sprintf("must be 0 to %d", maxBackfillItems))
	}
	if c.media != mediaEnclosures && c.media != mediaNone {
		return badConfig("media", `must be "enclosures" or "none"`)
	}
	if strings.TrimSpace(c.template) == "" {
		return badConfig("template", `must not be empty; leave it out for "{title}\n\n{link}"`)
	}
	for _, name := range placeholder.FindAllString(c.template, -1) {
		if !slices.Contains(placeholders, name) {
			return badConfig("template", "names "+name+"; use "+strings.Join(placeholders, ", "))
		}
	}
	for _, list := range []struct {
		key   string
		words []string
	}{{"tags", c.tags}, {"include", c.include}, {"exclude", c.exclude}} {
		for _, word := range list.words {
			if strings.TrimSpace(word) == "" {
				return badConfig(list.key, "holds an empty string; remove it")
			}
		}
	}
	return nil
}

func badConfig(key, problem string) error {
	return &pull.Failure{Code: "pull_config", Message: key + " " + problem}
}
