package rss

import (
	"encoding/json"
	"net/url"

	"autopost/internal/ingest/pull/item"
)

const (
	defaultTemplate = "{title}\n\n{link}"
	mediaEnclosures = "enclosures"
	mediaNone       = "none"
)

// placeholders are allowed in a template.
var placeholders = []string{"{title}", "{link}", "{summary}", "{author}", "{categories}"}

// config is the config_json of a source.
type config struct {
	item.Options

	url *url.URL
}

// parseConfig parses config_json. An error names the key and the fix.
func parseConfig(raw json.RawMessage) (config, error) {
	var c config
	var address string
	media := mediaEnclosures
	options, err := item.Decode(raw, defaultTemplate, placeholders, map[string]item.Field{
		"url":   {Into: &address, Must: "a string"},
		"media": {Into: &media, Must: "a string"},
	})
	if err != nil {
		return c, err
	}
	if media != mediaEnclosures && media != mediaNone {
		return c, item.BadConfig("media", `must be "enclosures" or "none"`)
	}
	options.NoMedia = media == mediaNone
	c.Options = options
	if c.url, err = url.Parse(address); err != nil || !item.Web(c.url) {
		return c, item.BadConfig("url", "must be the feed's whole http or https URL")
	}
	return c, nil
}
