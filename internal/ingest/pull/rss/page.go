package rss

import (
	"bytes"
	"net/url"
	"slices"
	"strings"

	nethtml "golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"autopost/internal/ingest/pull/item"
)

const (
	// maxHead bounds the part of a page that is searched for feeds, in bytes.
	maxHead = 512 << 10
	// maxFound is the maximum number of reported feeds.
	maxFound = 5
)

// htmlPage returns the failure of a source whose url is an HTML page, with the feeds to which the page
// links.
func htmlPage(text []byte, address *url.URL) error {
	failure := notAFeed("the answer is an HTML page, not a feed; correct url, or the site wants a login or blocks us")
	failure.Found = feedsOf(text[:min(len(text), maxHead)], address)
	if len(failure.Found) > 0 {
		failure.Message = "the answer is an HTML page, not a feed, but it names one: autopost source test shows where; set url to it"
	}
	return failure
}

// feedsOf returns the addresses of <link rel="alternate"> in a page.
func feedsOf(page []byte, address *url.URL) []string {
	var found []string
	tokens := nethtml.NewTokenizer(bytes.NewReader(page))
	for len(found) < maxFound {
		kind := tokens.Next()
		if kind == nethtml.ErrorToken {
			break
		}
		if kind != nethtml.StartTagToken && kind != nethtml.SelfClosingTagToken {
			continue
		}
		token := tokens.Token()
		if token.DataAtom != atom.Link {
			continue
		}
		attributes := map[string]string{}
		for _, a := range token.Attr {
			attributes[a.Key] = a.Val
		}
		kinds := []string{"application/rss+xml", "application/atom+xml", "application/feed+json", "application/rdf+xml"}
		if !slices.Contains(strings.Fields(strings.ToLower(attributes["rel"])), "alternate") ||
			!slices.Contains(kinds, strings.ToLower(strings.TrimSpace(attributes["type"]))) {
			continue
		}
		if feed := item.Absolute(address, attributes["href"]); feed != "" && !slices.Contains(found, feed) {
			found = append(found, feed)
		}
	}
	return found
}
