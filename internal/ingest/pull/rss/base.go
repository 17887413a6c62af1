package rss

import (
	"bytes"
	"encoding/xml"
	"html"
	"net/url"
	"regexp"
	"strings"

	"autopost/internal/ingest/pull/item"
)

var (
	baseAttribute = regexp.MustCompile(`\sxml:base\s*=\s*("[^"]*"|'[^']*')`)
	// references matches the attributes of feeds that contain an address.
	references = regexp.MustCompile(`(\s(?:href|src|url|uri)\s*=\s*)("[^"]*"|'[^']*')`)
)

// baseFrom returns the base inside an element: its xml:base resolved against around, or around.
func baseFrom(t xml.StartElement, around, address *url.URL) *url.URL {
	for _, a := range t.Attr {
		if a.Name.Space != "xml" || a.Name.Local != "base" || len(a.Value) > item.MaxAddress {
			continue
		}
		if around == nil {
			around = address
		}
		if own, err := around.Parse(strings.TrimSpace(a.Value)); err == nil && len(own.String()) <= item.MaxAddress {
			return own
		}
	}
	return around
}

// rewrite removes xml:base from a start tag and makes its references absolute.
func rewrite(tag []byte, base *url.URL) []byte {
	if base == nil {
		return tag
	}
	tag = baseAttribute.ReplaceAll(tag, nil)
	return references.ReplaceAllFunc(tag, func(attribute []byte) []byte {
		parts := references.FindSubmatch(attribute)
		value := parts[2][1 : len(parts[2])-1]
		u, err := base.Parse(strings.TrimSpace(html.UnescapeString(string(value))))
		if err != nil || len(value) > item.MaxAddress {
			return attribute
		}
		var out bytes.Buffer
		out.Write(parts[1])
		out.WriteByte('"')
		xml.Escape(&out, []byte(u.String()))
		out.WriteByte('"')
		return out.Bytes()
	})
}
