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

	"autopost/internal/ingest/pull"
)

// maxRef is the longest source_ref that the database takes, in characters.
const maxRef = 512

// entry is one item of a feed, in plain words.
type entry struct {
	ref        string
	title      string
	summary    string
	link       string
	author     string
	categories []string
	media      []pull.Media
	published  *time.Time
}

// parse reads a feed and returns its entries, oldest first, each once.
func parse(body []byte, contentType string, address *url.URL) ([]entry, error) {
	doc, err := readDocument(body, contentType, address)
	if err != nil {
		return nil, err
	}
	parser := gofeed.NewParser()
	parser.KeepOriginalFeed = true
	// Looking for pictures inside the text of every item is work for nothing.
	parser.RSSTranslator = &gofeed.DefaultRSSTranslator{DisableContentImageScan: true}
	feed, err := parser.Parse(bytes.NewReader(doc.text))
	if err != nil {
		return nil, malformed("the feed cannot be read: %s", clean(err.Error()))
	}
	base := baseOf(doc, feed, address)
	opaque := opaqueIDs(feed)
	var entries []entry
	seen := map[string]bool{}
	dated := true
	for _, item := range feed.Items {
		e := makeEntry(item, feed.FeedType, base, opaque)
		// Feeds put the newest first: of two with one id the newer counts.
		if seen[e.ref] {
			continue
		}
		seen[e.ref] = true
		dated = dated && e.published != nil
		entries = append(entries, e)
	}
	slices.Reverse(entries)
	if dated {
		slices.SortStableFunc(entries, func(a, b entry) int { return a.published.Compare(*b.published) })
	}
	return entries, nil
}

// baseOf is what relative links are relative to: the document's xml:base, else the
// feed's own link, else its address.
func baseOf(doc document, feed *gofeed.Feed, address *url.URL) *url.URL {
	if doc.base != nil {
		return doc.base
	}
	if link, err := address.Parse(strings.TrimSpace(feed.Link)); err == nil && feed.Link != "" && web(link) {
		return link
	}
	return address
}

// opaqueIDs are the guids of an RSS feed that say they are no links.
func opaqueIDs(feed *gofeed.Feed) map[string]bool {
	opaque := map[string]bool{}
	if original, ok := feed.OriginalFeed().(*gofeedrss.Feed); ok {
		for _, item := range original.Items {
			if item.GUID != nil && !strings.EqualFold(item.GUID.IsPermalink, "true") {
				opaque[item.GUID.Value] = true
			}
		}
	}
	return opaque
}

func makeEntry(item *gofeed.Item, feedType string, base *url.URL, opaque map[string]bool) entry {
	e := entry{
		title:     headline(item.Title),
		summary:   plainText(cmp.Or(item.Description, item.Content)),
		link:      absolute(base, item.Link),
		media:     mediaOf(item, base),
		published: publishedAt(item),
	}
	if feedType == "json" {
		// JSON Feed has HTML in content_html alone.
		e.title = clean(item.Title)
		if item.Description != "" {
			e.summary = tidy(item.Description)
		}
	}
	guid := clean(item.GUID)
	if e.link == "" && !opaque[item.GUID] && (strings.HasPrefix(guid, "http://") || strings.HasPrefix(guid, "https://")) {
		e.link = absolute(base, guid)
	}
	var names []string
	for _, person := range item.Authors {
		if person != nil && person.Name != "" {
			names = append(names, headline(person.Name))
		}
	}
	e.author = strings.Join(names, ", ")
	for _, category := range item.Categories {
		e.categories = append(e.categories, headline(category))
	}
	e.ref = cmp.Or(guid, e.link)
	if e.ref == "" {
		e.ref = "sha256:" + hash(e.title+"\n"+clean(item.Published))
	}
	if len(e.ref) > maxRef {
		e.ref = "sha256:" + hash(e.ref)
	}
	return e
}

// absolute resolves a reference; "" for what is no http or https address. User
// information is dropped: it would be published.
func absolute(base *url.URL, reference string) string {
	reference = strings.TrimSpace(strings.Map(dropControl, reference))
	if reference == "" {
		return ""
	}
	u, err := base.Parse(reference)
	if err != nil || !web(u) {
		return ""
	}
	u.User = nil
	return u.String()
}

func web(u *url.URL) bool { return u.Host != "" && (u.Scheme == "http" || u.Scheme == "https") }

// zones are Russian zone names that the feed parser reads as UTC.
var zones = map[string]string{
	"MSK": "+0300", "MSD": "+0400", "SAMT": "+0400", "YEKT": "+0500", "OMST": "+0600", "NOVT": "+0700",
	"KRAT": "+0700", "IRKT": "+0800", "YAKT": "+0900", "VLAT": "+1000", "MAGT": "+1100", "PETT": "+1200",
}

var zonedLayouts = []string{
	"Mon, 2 Jan 2006 15:04:05 -0700", "Mon, 2 Jan 2006 15:04 -0700", "2 Jan 2006 15:04:05 -0700", "2 Jan 2006 15:04 -0700",
	"Mon, 2 Jan 06 15:04:05 -0700", "2006-01-02 15:04:05 -0700", "2006-01-02T15:04:05 -0700",
}

// publishedAt is the item's own time, or nil: none is invented.
func publishedAt(item *gofeed.Item) *time.Time {
	parsed := item.PublishedParsed
	fields := strings.Fields(cmp.Or(item.Published, item.Updated))
	if len(fields) > 1 {
		if offset, ok := zones[strings.ToUpper(fields[len(fields)-1])]; ok {
			fields[len(fields)-1] = offset
			parsed = parseZoned(strings.Join(fields, " "))
		}
	}
	// Years outside are mistakes ("0000-00-00", seconds read as a year).
	if parsed == nil || parsed.Year() < 1970 || parsed.Year() > 2100 {
		return nil
	}
	utc := parsed.UTC()
	return &utc
}

func parseZoned(text string) *time.Time {
	for _, layout := range zonedLayouts {
		if t, err := time.Parse(layout, text); err == nil {
			return &t
		}
	}
	return nil
}
