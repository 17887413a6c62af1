package rss

import (
	"bytes"
	"cmp"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/mmcdole/gofeed"
	gofeedrss "github.com/mmcdole/gofeed/rss"

	"autopost/internal/ingest/pull/shape"
)

// feed is what a document says, in plain words.
type feed struct {
	// entries are oldest first, each once.
	entries []shape.Entry
	// pace is the feed's own hint of how often it changes; 0 is none.
	pace time.Duration
}

// parse reads a feed.
func parse(body []byte, contentType string, address *url.URL) (feed, error) {
	doc, err := readDocument(body, contentType, address)
	if err != nil {
		return feed{}, err
	}
	parser := gofeed.NewParser()
	parser.KeepOriginalFeed = true
	// Looking for pictures inside the text of every item is work for nothing.
	parser.RSSTranslator = &gofeed.DefaultRSSTranslator{DisableContentImageScan: true}
	parsed, err := parser.Parse(bytes.NewReader(doc.text))
	if err != nil {
		return feed{}, malformed("the feed cannot be read: %s", shape.Clean(err.Error()))
	}
	return feed{entries: entriesOf(parsed, doc, address), pace: pace(parsed)}, nil
}

func entriesOf(parsed *gofeed.Feed, doc document, address *url.URL) []shape.Entry {
	base := baseOf(doc, parsed, address)
	opaque := opaqueIDs(parsed)
	now := time.Now()
	var entries []shape.Entry
	seen := map[string]bool{}
	dated := true
	for i, item := range parsed.Items {
		its := itemStart{}
		if len(doc.items) == len(parsed.Items) {
			its = doc.items[i]
		}
		e := makeEntry(item, parsed.FeedType, cmp.Or(its.base, base), opaque)
		e.ID = cmp.Or(e.ID, shape.Clean(its.about))
		e.Published = publishedAt(item, now)
		// Feeds put the newest first: of two with one id the newer counts.
		ref := e.Ref()
		if seen[ref] {
			continue
		}
		seen[ref] = true
		dated = dated && e.Published != nil
		entries = append(entries, e)
	}
	slices.Reverse(entries)
	if dated {
		slices.SortStableFunc(entries, func(a, b shape.Entry) int { return a.Published.Compare(*b.Published) })
	}
	return entries
}

// baseOf is what relative links are relative to: the document's xml:base, else the
// feed's own link, else its address.
func baseOf(doc document, parsed *gofeed.Feed, address *url.URL) *url.URL {
	if doc.base != nil {
		return doc.base
	}
	if link, err := address.Parse(strings.TrimSpace(parsed.Link)); err == nil && parsed.Link != "" && shape.Web(link) {
		return link
	}
	return address
}

// opaqueIDs are the guids of an RSS feed that say they are no links.
func opaqueIDs(parsed *gofeed.Feed) map[string]bool {
	opaque := map[string]bool{}
	if original, ok := parsed.OriginalFeed().(*gofeedrss.Feed); ok {
		for _, item := range original.Items {
			if item.GUID != nil && !strings.EqualFold(item.GUID.IsPermalink, "true") {
				opaque[item.GUID.Value] = true
			}
		}
	}
	return opaque
}

func makeEntry(item *gofeed.Item, feedType string, base *url.URL, opaque map[string]bool) shape.Entry {
	e := shape.Entry{
		ID:    shape.Clean(item.GUID),
		Title: shape.Headline(item.Title),
		Text:  shape.PlainText(cmp.Or(item.Description, item.Content)),
		Link:  shape.Absolute(base, item.Link),
		Media: mediaOf(item, base),
	}
	if feedType == "json" {
		// JSON Feed has HTML in content_html alone.
		e.Title = shape.Clean(item.Title)
		if item.Description != "" {
			e.Text = shape.Tidy(item.Description)
		}
	}
	if e.Link == "" && !opaque[item.GUID] && (strings.HasPrefix(e.ID, "http://") || strings.HasPrefix(e.ID, "https://")) {
		e.Link = shape.Absolute(base, e.ID)
	}
	var names []string
	for _, person := range item.Authors {
		if person != nil && person.Name != "" {
			names = append(names, shape.Headline(person.Name))
		}
	}
	e.Author = strings.Join(names, ", ")
	for _, category := range item.Categories {
		e.Categories = append(e.Categories, shape.Headline(category))
	}
	return e
}
