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
	"autopost/internal/ingest/pull/shape"
)

// What a document may have; far above any honest feed.
const (
	maxDepth      = 100
	maxElements   = 500_000
	maxAttributes = 100
)

// document is a feed that passed the checks, as UTF-8. Its xml:base attributes are
// gone: what they say of attributes is worked in, the rest stands with the items.
type document struct {
	text []byte
	// base is that of the root; nil where none is in force.
	base *url.URL
	// items are the feed's, in their order.
	items []itemStart
}

// itemStart is what the start of an item says that the feed parser does not tell.
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

// readDocument decodes a body and refuses what is no feed, is cut off, or is
// built to exhaust a parser. The feed parser behind it is lenient: it would take
// half a document for a whole one.
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
	w := walk{text: text, rewrites: bytes.Contains(text, []byte("xml:base")), address: address}
	return w.run()
}

func checkJSON(text []byte) error {
	var feed struct {
		Version string             `json:"version"`
		Items   *[]json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(text, &feed); err != nil {
		if _, ok := errors.AsType[*json.SyntaxError](err); ok {
			return malformed("the JSON is broken or cut off: %v", err)
		}
		return notAFeed("the answer is JSON, but no JSON Feed; a source of kind api reads other JSON")
	}
	if !strings.Contains(feed.Version, "jsonfeed.org/version/") || feed.Items == nil {
		return notAFeed("the answer is JSON, but no JSON Feed; a source of kind api reads other JSON")
	}
	if len(*feed.Items) > maxElements {
		return malformed("the feed has more than %d items", maxElements)
	}
	return nil
}

// walk goes through a document once: every element closed by its own name, no
// entities of its own, bounded in depth and number. Where the document has
// xml:base, its references are made absolute on the way: the feed parser takes the
// last segment of a base for a folder.
type walk struct {
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

func (w *walk) run() (document, error) {
	decoder := xml.NewDecoder(bytes.NewReader(w.text))
	// Names of entities and bare ampersands are often wrong in real feeds;
	// the structure, which this walk checks, must be right.
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
		raw := w.text[from:decoder.InputOffset()]
		from = decoder.InputOffset()
		switch t := token.(type) {
		case xml.Directive:
			if bytes.Contains(bytes.ToUpper(t), []byte("<!ENTITY")) {
				return document{}, malformed("the document declares entities of its own, which are not read")
			}
		case xml.StartElement:
			if raw, err = w.start(t, raw); err != nil {
				return document{}, err
			}
		case xml.EndElement:
			name := t.Name.Space + ":" + t.Name.Local
			if len(w.open) == 0 || w.open[len(w.open)-1].name != name {
				return document{}, malformed("the XML is broken: </%s> closes nothing", strings.TrimPrefix(name, ":"))
			}
			w.open = w.open[:len(w.open)-1]
		}
		if w.rewrites {
			w.out.Write(raw)
		}
	}
	if w.elements == 0 {
		return document{}, notAFeed("the document has no root element")
	}
	if len(w.open) > 0 {
		return document{}, malformed("the XML is cut off: <%s> is not closed", strings.TrimPrefix(w.open[len(w.open)-1].name, ":"))
	}
	w.doc.text = w.text
	if w.rewrites {
		w.doc.text = w.out.Bytes()
	}
	return w.doc, nil
}

// start takes the start of an element and returns its text, rewritten where a base is in force.
func (w *walk) start(t xml.StartElement, raw []byte) ([]byte, error) {
	w.elements++
	if len(w.open) >= maxDepth || w.elements > maxElements || len(t.Attr) > maxAttributes {
		return nil, malformed("the document has more than %d levels, %d elements or %d attributes of one element", maxDepth, maxElements, maxAttributes)
	}
	e := element{name: t.Name.Space + ":" + t.Name.Local}
	if len(w.open) > 0 {
		e.base = w.open[len(w.open)-1].base
	} else if err := w.checkRoot(t.Name.Local); err != nil {
		return nil, err
	}
	if w.rewrites {
		e.base = baseFrom(t, e.base, w.address)
		raw = rewrite(raw, e.base)
	}
	if len(w.open) == 0 {
		w.doc.base = e.base
	}
	if local := strings.ToLower(t.Name.Local); (local == "item" || local == "entry") && len(w.open) <= 2 {
		item := itemStart{base: e.base}
		for _, a := range t.Attr {
			if a.Name.Space == "rdf" && a.Name.Local == "about" {
				item.about = a.Value
			}
		}
		w.doc.items = append(w.doc.items, item)
	}
	w.open = append(w.open, e)
	return raw, nil
}

func (w *walk) checkRoot(local string) error {
	switch strings.ToLower(local) {
	case "rss", "rdf", "feed":
		return nil
	case "html":
		return htmlPage(w.text, w.address)
	}
	return notAFeed("the document's root is <" + shape.Clean(local) + ">, which is no feed")
}
