package jsonapi

import (
	"fmt"
	"net/url"
	"time"

	"autopost/internal/ingest/pull"
	"autopost/internal/ingest/pull/item"
)

func mapping(format string, args ...any) *pull.Failure {
	return &pull.Failure{Code: "pull_mapping", Message: fmt.Sprintf(format, args...)}
}

// entries maps the items of a page.
func (c config) entries(document any, at *url.URL) ([]item.Entry, error) {
	list, ok := c.items.in(document).([]any)
	if !ok {
		return nil, mapping("items must point to an array, but points to %s; the document has %s", keysOf(c.items.in(document)), keysOf(document))
	}
	entries := make([]item.Entry, 0, len(list))
	now := time.Now()
	usable := false
	for _, value := range list {
		e := c.entry(value, at, now)
		usable = usable || e.ID+e.Title+e.Text+e.Link != "" || len(e.Media) > 0
		entries = append(entries, e)
	}
	if len(list) > 0 && !usable {
		return nil, mapping("map must find values in the items; an item has %s", keysOf(list[0]))
	}
	return entries, nil
}

func (c config) entry(value any, at *url.URL, now time.Time) item.Entry {
	get := func(name string) any {
		p, ok := c.fields[name]
		if !ok {
			return nil
		}
		return p.in(value)
	}
	e := item.Entry{
		ID:         item.Clean(text(get("id"))),
		Title:      item.Clean(item.Readable(text(get("title")))),
		Text:       item.Readable(text(get("text"))),
		Author:     item.Clean(text(get("author"))),
		Categories: texts(get("tags")),
		Published:  item.Plausible(item.ParseTime(text(get("published"))), now),
	}
	if reference := text(get("link")); reference != "" {
		e.Link = item.Absolute(at, reference)
	}
	addresses, kind := []string{text(get("media_url"))}, text(get("media_type"))
	if many, ok := get("media_url").([]any); ok {
		addresses = texts(many)
	}
	for _, reference := range addresses {
		address := item.Absolute(at, reference)
		if is := item.KindOf(kind, address); address != "" && is != "" && len(e.Media) < item.MaxMedia {
			e.Media = append(e.Media, pull.Media{Type: is, URL: address})
		}
	}
	return e
}
