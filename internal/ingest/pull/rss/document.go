package rss

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"autopost/internal/ingest/pull"
	"autopost/internal/ingest/pull/item"
)

// The limits of a document, far above real feeds.
const (
	maxDepth      = 100
	maxElements   = 80_000
	maxAttributes = 100
	// maxGrowth is how much longer a document may become by absolute references, in bytes.
	maxGrowth = 8 << 20
)

// document is a checked feed in UTF-8 without xml:base attributes. Their effect on references is
// applied; their effect on text content is in items.
type document struct {
	text []byte
	// base is that of the root element; nil without xml:base.
	base *url.URL
	// items are in the order of the feed.
	items []itemStart
}

// itemStart contains attributes of an item that the feed parser ignores.
type itemStart struct {
	base *url.URL
	// about is the item's id in RSS 1.0.
	about string
}

func malformed(format string, args ...any) error {
	return &pull.Failure{Code: "pull_malformed", Message: fmt.Sprintf(format, args...)}
}

func notAFeed(message string) *pull.Failure {
	return &pull.Failure{Code: "pull_not_a_feed", Message: message}
}

// readDocument decodes a body. It rejects a document that is not a feed, is incomplete, or is built to
// exhaust a parser. The feed parser itself is lenient and would accept half a document.
func readDocument(body []byte, contentType string, address *url.URL) (document, error) {
	text, err := decode(body, contentType)
	if err != nil {
		return document{}, err
	}
	start := strings.ToLower(string(text[:min(len(text), 64)]))
	switch {
	case len(text) == 0:
		return document{}, notAFeed("the answer is empty")
	case text[0] == '{' || text[0] == '[':
		return document{text: text}, checkJSON(text)
	case strings.HasPrefix(start, "<!doctype html"), strings.HasPrefix(start, "<html"):
		return document{}, htmlPage(text, address)
	case text[0] != '<':
		return document{}, notAFeed("the answer is neither XML nor JSON")
	}
	s := scan{text: text, rewrites: bytes.Contains(text, []byte("xml:base")), address: address}
	return s.run()
}

func checkJSON(text []byte) error {
	if err := item.CheckJSON(text); err != nil {
		return err
	}
	var feed struct {
		Version string             `json:"version"`
		Items   *[]json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(text, &feed); err != nil {
		if _, ok := errors.AsType[*json.SyntaxError](err); ok {
			return malformed("the JSON is broken or cut off: %v", err)
		}
		return notAFeed("the answer is JSON, but not a JSON Feed; use a source of kind api for other JSON")
	}
	if !strings.Contains(feed.Version, "jsonfeed.org/version/") || feed.Items == nil {
		return notAFeed("the answer is JSON, but not a JSON Feed; use a source of kind api for other JSON")
	}
	if len(*feed.Items) > item.MaxItems {
		return item.TooLarge("the feed must have at most %d items", item.MaxItems)
	}
	return nil
}

// scan reads a document once: every element is closed by its own name, there are no entity
// declarations, and depth and size are bounded. If the document has xml:base, references become
// absolute, because the feed parser takes the last segment of a base for a folder.
type scan struct {
	text     []byte
	rewrites bool
	address  *url.URL

	open     []element
	elements int
	doc      document
	out      bytes.Buffer
}

type element struct {
	name string
	base *url.URL
}

func (s *scan) run() (document, error) {
	decoder := xml.NewDecoder(bytes.NewReader(s.text))
	// Real feeds often have wrong entity names and bare ampersands. Their structure must be right.
	decoder.Strict = false
	var from int64
	for {
		token, err := decoder.RawToken()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return document{}, malformed("the XML is broken or cut off: %v", err)
		}
		raw := s.text[from:decoder.InputOffset()]
		from = decoder.InputOffset()
		switch t := token.(type) {
		case xml.Directive:
			if bytes.Contains(bytes.ToUpper(t), []byte("<!ENTITY")) {
				return document{}, malformed("the document declares entities, which are not supported")
			}
		case xml.StartElement:
			if raw, err = s.start(t, raw); err != nil {
				return document{}, err
			}
		case xml.EndElement:
			name := t.Name.Space + ":" + t.Name.Local
			if len(s.open) == 0 || s.open[len(s.open)-1].name != name {
				return document{}, malformed("the XML is broken: </%s> closes nothing", strings.TrimPrefix(name, ":"))
			}
			s.open = s.open[:len(s.open)-1]
		}
		if s.rewrites {
			if s.out.Write(raw); s.out.Len() > len(s.text)+maxGrowth {
				return document{}, item.TooLarge("xml:base makes the document more than %d bytes longer", maxGrowth)
			}
		}
	}
	if s.elements == 0 {
		return document{}, notAFeed("the document has no root element")
	}
	if len(s.open) > 0 {
		return document{}, malformed("the XML is cut off: <%s> is not closed", strings.TrimPrefix(s.open[len(s.open)-1].name, ":"))
	}
	s.doc.text = s.text
	if s.rewrites {
		s.doc.text = s.out.Bytes()
	}
	return s.doc, nil
}

// start checks the start of an element and returns its text, rewritten if it has a base.
func (s *scan) start(t xml.StartElement, raw []byte) ([]byte, error) {
	s.elements++
	if len(s.open) >= maxDepth || s.elements > maxElements || len(t.Attr) > maxAttributes {
		return nil, malformed("the document has more than %d levels, %d elements or %d attributes of one element", maxDepth, maxElements, maxAttributes)
	}
	e := element{name: t.Name.Space + ":" + t.Name.Local}
	if len(s.open) > 0 {
		e.base = s.open[len(s.open)-1].base
	} else if err := s.checkRoot(t.Name.Local); err != nil {
		return nil, err
	}
	if s.rewrites {
		e.base = baseFrom(t, e.base, s.address)
		raw = rewrite(raw, e.base)
	}
	if len(s.open) == 0 {
		s.doc.base = e.base
	}
	if local := strings.ToLower(t.Name.Local); (local == "item" || local == "entry") && len(s.open) <= 2 {
		feedItem := itemStart{base: e.base}
		for _, a := range t.Attr {
			if a.Name.Space == "rdf" && a.Name.Local == "about" {
				feedItem.about = a.Value
			}
		}
		if s.doc.items = append(s.doc.items, feedItem); len(s.doc.items) > item.MaxItems {
			return nil, item.TooLarge("the feed must have at most %d items", item.MaxItems)
		}
	}
	s.open = append(s.open, e)
	return raw, nil
}

func (s *scan) checkRoot(local string) error {
	switch strings.ToLower(local) {
	case "rss", "rdf", "feed":
		return nil
	case "html":
		return htmlPage(s.text, s.address)
	}
	return notAFeed("the document's root is <" + item.Clean(local) + ">, which is not a feed")
}
