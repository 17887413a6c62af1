package api

import (
	"fmt"
	"net/url"
	"time"

	"autopost/internal/ingest/pull"
	"autopost/internal/ingest/pull/shape"
)

func mapping(format string, args ...any) *pull.Failure {
	return &pull.Failure{Code: "pull_mapping", Message: fmt.Sprintf(format, args...)}
}

// entries maps the items of a page.
func (c config) entries(document any, at *url.URL) ([]shape.Entry, error) {
	list, ok := c.items.in(document).([]any)
	if !ok {
		return nil, mapping("items leads to no array: there is %s where it leads, and at the top %s", keysOf(c.items.in(document)), keysOf(document))
	}
	entries := make([]shape.Entry, 0, len(list))
	now := time.Now()
	usable := false
	for _, item := range list {
		e := c.entry(item, at, now)
		usable = usable || e.ID+e.Title+e.Text+e.Link != "" || len(e.Media) > 0
		entries = append(entries, e)
	}
	if len(list) > 0 && !usable {
		return nil, mapping("map finds nothing in any item: an item has %s", keysOf(list[0]))
	}
	return entries, nil
}

func (c config) entry(item any, at *url.URL, now time.Time) shape.Entry {
	get := func(name string) any {
		p, ok := c.fields[name]
		if !ok {
			return nil
		}
		return p.in(item)
	}
	e := shape.Entry{
		ID:         shape.Clean(text(get("id"))),
		Title:      shape.Clean(shape.Readable(text(get("title")))),
		Text:       shape.Readable(text(get("text"))),
		Author:     shape.Clean(text(get("author"))),
		Categories: texts(get("tags")),
		Published:  shape.Plausible(shape.ParseTime(text(get("published"))), now),
	}
	if reference := text(get("link")); reference != "" {
		e.Link = shape.Absolute(at, reference)
	}
	addresses, kind := []string{text(get("media_url"))}, text(get("media_type"))
	if many, ok := get("media_url").([]any); ok {
		addresses = texts(many)
	}
	for _, reference := range addresses {
		address := shape.Absolute(at, reference)
		if is := shape.KindOf(kind, address); address != "" && is != "" && len(e.Media) < shape.MaxMedia {
			e.Media = append(e.Media, pull.Media{Type: is, URL: address})
		}
	}
	return e
}
