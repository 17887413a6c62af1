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

	"autopost/internal/ingest/pull/item"
)

// feed is the content of a document.
type feed struct {
	// entries are oldest first, without duplicates.
	entries []item.Entry
	// pace is the feed's hint of how often it changes; 0 if none.
	pace time.Duration
}

// parse parses a feed.
func parse(body []byte, contentType string, address *url.URL) (feed, error) {
	doc, err := readDocument(body, contentType, address)
	if err != nil {
		return feed{}, err
	}
	parser := gofeed.NewParser()
	parser.KeepOriginalFeed = true
	// Pictures inside the text are not used.
	parser.RSSTranslator = &gofeed.DefaultRSSTranslator{DisableContentImageScan: true}
	parsed, err := parser.Parse(bytes.NewReader(doc.text))
	if err != nil {
		return feed{}, malformed("the feed cannot be read: %s", item.Clean(err.Error()))
	}
	return feed{entries: entriesOf(parsed, doc, address), pace: pace(parsed)}, nil
}

func entriesOf(parsed *gofeed.Feed, doc document, address *url.URL) []item.Entry {
	base := baseOf(doc, parsed, address)
	opaque := opaqueIDs(parsed)
	now := time.Now()
	var entries []item.Entry
	seen := map[string]bool{}
	dated := true
	for i, feedItem := range parsed.Items {
		its := itemStart{}
		if len(doc.items) == len(parsed.Items) {
			its = doc.items[i]
		}
		e := makeEntry(feedItem, parsed.FeedType, cmp.Or(its.base, base), opaque)
		e.ID = cmp.Or(e.ID, item.Clean(its.about))
		e.Published = publishedAt(feedItem, now)
		// Feeds put the newest item first. Of two items with one id, the newer one counts.
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
		slices.SortStableFunc(entries, func(a, b item.Entry) int { return a.Published.Compare(*b.Published) })
	}
	return entries
}

// baseOf returns the base of relative links: the document's xml:base, else the feed's link, else its
// address.
func baseOf(doc document, parsed *gofeed.Feed, address *url.URL) *url.URL {
	if doc.base != nil {
		return doc.base
	}
	if link := item.Absolute(address, parsed.Link); link != "" {
		if base, err := url.Parse(link); err == nil {
			return base
		}
	}
	return address
}

// opaqueIDs returns the guids of an RSS feed that are not links.
func opaqueIDs(parsed *gofeed.Feed) map[string]bool {
	opaque := map[string]bool{}
	if original, ok := parsed.OriginalFeed().(*gofeedrss.Feed); ok {
		for _, feedItem := range original.Items {
			if feedItem.GUID != nil && !strings.EqualFold(feedItem.GUID.IsPermalink, "true") {
				opaque[feedItem.GUID.Value] = true
			}
		}
	}
	return opaque
}

func makeEntry(feedItem *gofeed.Item, feedType string, base *url.URL, opaque map[string]bool) item.Entry {
	e := item.Entry{
		ID:    item.Clean(feedItem.GUID),
		Title: item.Headline(feedItem.Title),
		Text:  item.PlainText(cmp.Or(feedItem.Description, feedItem.Content)),
		Link:  item.Absolute(base, feedItem.Link),
		Media: mediaOf(feedItem, base),
	}
	if feedType == "json" {
		// Only content_html of a JSON Feed is HTML.
		e.Title = item.Clean(feedItem.Title)
		if feedItem.Description != "" {
			e.Text = item.Tidy(feedItem.Description)
		}
	}
	if e.Link == "" && !opaque[feedItem.GUID] && (strings.HasPrefix(e.ID, "http://") || strings.HasPrefix(e.ID, "https://")) {
		e.Link = item.Absolute(base, e.ID)
	}
	var names []string
	for _, person := range feedItem.Authors {
		if person != nil && person.Name != "" {
			names = append(names, item.Headline(person.Name))
		}
	}
	e.Author = strings.Join(names, ", ")
	for _, category := range feedItem.Categories {
		e.Categories = append(e.Categories, item.Headline(category))
	}
	return e
}
