package jsonapi

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"

	"autopost/internal/ingest/pull/item"
)

const (
	defaultTemplate = "{title}\n\n{text}\n\n{link}"
	defaultHeader   = "Authorization"
	defaultPages    = 10
	maxPages        = 100
)

var (
	placeholders = []string{"{title}", "{text}", "{link}", "{author}", "{categories}"}
	// fields are the keys of map.
	fields = []string{"id", "title", "text", "link", "author", "tags", "published", "media_url", "media_type"}
)

// config is the config_json of a source.
type config struct {
	item.Options

	url         *url.URL
	items       pointer
	fields      map[string]pointer
	paging      paging
	oldestFirst bool
	authRef     string
	authHeader  string
	authPrefix  string
}

// parseConfig reads config_json. An error contains the key and the remedy.
func parseConfig(raw json.RawMessage) (config, error) {
	c := config{fields: map[string]pointer{}, authHeader: defaultHeader}
	var address, items, order string
	var prefix *string
	var mapping map[string]string
	options, err := item.Decode(raw, defaultTemplate, placeholders, map[string]item.Field{
		"url":         {Into: &address, Must: "a string"},
		"items":       {Into: &items, Must: "a JSON pointer, as in \"/data/items\""},
		"map":         {Into: &mapping, Must: `an object of JSON pointers; write {"id": "/id", "text": "/body"}`},
		"paging":      {Into: &c.paging, Must: `an object; write {"by": "link_header"}`},
		"order":       {Into: &order, Must: "a string"},
		"auth_ref":    {Into: &c.authRef, Must: "a string"},
		"auth_header": {Into: &c.authHeader, Must: "a string"},
		"auth_prefix": {Into: &prefix, Must: "a string"},
	})
	if err != nil {
		return c, err
	}
	c.Options = options
	if c.url, err = url.Parse(address); err != nil || !item.Web(c.url) {
		return c, item.BadConfig("url", "must be an absolute http or https URL")
	}
	if order != "" && order != "newest_first" && order != "oldest_first" {
		return c, item.BadConfig("order", `must be "newest_first" or "oldest_first"`)
	}
	c.oldestFirst = order == "oldest_first"
	if c.items, err = parsePointer("items", items); err != nil {
		return c, err
	}
	if err := c.setMap(mapping); err != nil {
		return c, err
	}
	switch {
	case prefix != nil:
		c.authPrefix = *prefix
	case strings.EqualFold(c.authHeader, defaultHeader):
		c.authPrefix = "Bearer "
	}
	return c, c.paging.check()
}

func (c *config) setMap(mapping map[string]string) error {
	if len(mapping) == 0 {
		return item.BadConfig("map", `must be set; write {"id": "/id", "text": "/body"}`)
	}
	for _, name := range slices.Sorted(maps.Keys(mapping)) {
		if !slices.Contains(fields, name) {
			return item.BadConfig("map", "must have known keys, got "+name+"; use "+strings.Join(fields, ", "))
		}
		p, err := parsePointer("map."+name, mapping[name])
		if err != nil {
			return err
		}
		c.fields[name] = p
	}
	return nil
}
