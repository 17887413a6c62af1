package rss

import (
	"encoding/json"
	"net/url"

	"autopost/internal/ingest/pull/shape"
)

const (
	defaultTemplate = "{title}\n\n{link}"
	mediaEnclosures = "enclosures"
	mediaNone       = "none"
)

// placeholders are what a template may name.
var placeholders = []string{"{title}", "{link}", "{summary}", "{author}", "{categories}"}

// config is the config_json of a source.
type config struct {
	shape.Options

	url *url.URL
}

// parseConfig reads config_json. What is wrong is named with its key and remedy.
func parseConfig(raw json.RawMessage) (config, error) {
	var c config
	var address string
	media := mediaEnclosures
	options, err := shape.Decode(raw, defaultTemplate, placeholders, map[string]shape.Field{
		"url":   {Into: &address, Must: "a string"},
		"media": {Into: &media, Must: "a string"},
	})
	if err != nil {
		return c, err
	}
	if media != mediaEnclosures && media != mediaNone {
		return c, shape.BadConfig("media", `must be "enclosures" or "none"`)
	}
	options.NoMedia = media == mediaNone
	c.Options = options
	if c.url, err = url.Parse(address); err != nil || !shape.Web(c.url) {
		return c, shape.BadConfig("url", "must be the feed's whole http or https URL")
	}
	return c, nil
}
