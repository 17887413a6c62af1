package item

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

// Options are the part of config_json that all kinds of sources share.
type Options struct {
	// Backfill is how many items are published at first sight, newest first.
	Backfill int
	// Template of the text, with the placeholders of the kind of source.
	Template string
	// Tags are added to the categories of every item.
	Tags []string
	// NoMedia omits media.
	NoMedia bool

	filter filter
}

// Field is a key of config_json: the target of its value and the description of a valid value.
type Field struct {
	Into any
	Must string
}

// Decode reads the shared keys of config_json and the own keys of a kind. defaultTemplate is the default of template. An
// error contains the key and the remedy.
func Decode(raw json.RawMessage, defaultTemplate string, placeholders []string, own map[string]Field) (Options, error) {
	o := Options{Template: defaultTemplate}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil || fields == nil {
		return o, BadConfig("config_json", `must be a JSON object; write {"url": "https://…"}`)
	}
	// Only the database uses the interval; it is validated here.
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
			return o, BadConfig("tags", "must not contain an empty string; remove it")
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
		return BadConfig("template", "must not be empty; remove it for the default")
	}
	for _, name := range placeholder.FindAllString(template, -1) {
		if !slices.Contains(placeholders, name) {
			return BadConfig("template", "must contain known placeholders, got "+name+"; use "+strings.Join(placeholders, ", "))
		}
	}
	return nil
}

// BadConfig returns the failure for an invalid key of config_json.
func BadConfig(key, problem string) *pull.Failure {
	return &pull.Failure{Code: "pull_config", Message: key + " " + problem}
}
