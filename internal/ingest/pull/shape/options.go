package shape

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"autopost/internal/ingest/pull"
)

const (
	maxIntervalSecs  = 7 * 24 * 3600
	maxBackfillItems = 1000
)

var placeholder = regexp.MustCompile(`\{[A-Za-z_]*\}`)

// Options are the part of config_json that all kinds share.
type Options struct {
	// Backfill is how many items are published at first sight, newest first.
	Backfill int
	// Template of the text, with the placeholders that the kind knows.
	Template string
	// Tags are added to the categories of every item.
	Tags []string
	// NoMedia leaves media out.
	NoMedia bool

	filter filter
}

// Field is a key of config_json: where it goes, and what it must be in words.
type Field struct {
	Into any
	Must string
}

// Decode reads config_json: the keys that all kinds share, and those of this one.
// It fills in defaultTemplate. What is wrong is named with its key and remedy.
func Decode(raw json.RawMessage, defaultTemplate string, placeholders []string, own map[string]Field) (Options, error) {
	o := Options{Template: defaultTemplate}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil || fields == nil {
		return o, BadConfig("config_json", `must be a JSON object; write {"url": "https://…"}`)
	}
	// The interval is checked here; the database acts on it.
	interval := 300
	var include, exclude []string
	known := map[string]Field{
		"interval_seconds": {&interval, "a whole number of seconds"},
		"backfill_items":   {&o.Backfill, "a whole number of items"},
		"template":         {&o.Template, "a string"},
		"tags":             {&o.Tags, `an array of strings; write ["…"]`},
		"include":          {&include, `an array of strings; write ["…"]`},
		"exclude":          {&exclude, `an array of strings; write ["…"]`},
	}
	maps.Copy(known, own)
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		field, ok := known[key]
		if !ok {
			return o, BadConfig(key, "is unknown; remove it or use one of "+strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
		if err := json.Unmarshal(fields[key], field.Into); err != nil {
			return o, BadConfig(key, "must be "+field.Must)
		}
	}
	if interval < 1 || interval > maxIntervalSecs {
		return o, BadConfig("interval_seconds", fmt.Sprintf("must be 1 to %d", maxIntervalSecs))
	}
	if o.Backfill < 0 || o.Backfill > maxBackfillItems {
		return o, BadConfig("backfill_items", fmt.Sprintf("must be 0 to %d", maxBackfillItems))
	}
	for _, tag := range o.Tags {
		if strings.TrimSpace(tag) == "" {
			return o, BadConfig("tags", "holds an empty string; remove it")
		}
	}
	if err := checkTemplate(o.Template, placeholders); err != nil {
		return o, err
	}
	var err error
	if o.filter.include, err = compile("include", include); err != nil {
		return o, err
	}
	o.filter.exclude, err = compile("exclude", exclude)
	return o, err
}

func checkTemplate(template string, placeholders []string) error {
	if strings.TrimSpace(template) == "" {
		return BadConfig("template", "must not be empty; leave it out for the default")
	}
	for _, name := range placeholder.FindAllString(template, -1) {
		if !slices.Contains(placeholders, name) {
			return BadConfig("template", "names "+name+"; use "+strings.Join(placeholders, ", "))
		}
	}
	return nil
}

// BadConfig is the failure of a source whose config_json is wrong.
func BadConfig(key, problem string) *pull.Failure {
	return &pull.Failure{Code: "pull_config", Message: key + " " + problem}
}
