package rss

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/url"
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/unicode"

	"autopost/internal/ingest/pull"
)

// What a document may have; far above any honest feed.
const (
	maxDepth      = 100
	maxElements   = 200_000
	maxAttributes = 100
)

// document is a feed that passed the checks, as UTF-8.
type document struct {
	text []byte
	// base is the root's xml:base, resolved; nil when it has none.
	base *url.URL
}

func malformed(format string, args ...any) error {
	return &pull.Failure{Code: "pull_malformed", Message: fmt.Sprintf(format, args...)}
}

func notAFeed(message string) error {
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
		return document{}, htmlPage()
	case text[0] != '<':
		return document{}, notAFeed("the answer is neither XML nor JSON")
	}
	base, err := checkXML(text)
	if err != nil {
		return document{}, err
	}
	doc := document{text: text}
	if base != "" {
		if u, err := address.Parse(base); err == nil {
			doc.base = u
		}
	}
	return doc, nil
}

func htmlPage() error {
	return notAFeed("the answer is an HTML page, not a feed; correct url, or the site wants a login or blocks us")
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
		return notAFeed("the answer is JSON, but no JSON Feed")
	}
	if !strings.Contains(feed.Version, "jsonfeed.org/version/") || feed.Items == nil {
		return notAFeed("the answer is JSON, but no JSON Feed")
	}
	if len(*feed.Items) > maxElements {
		return malformed("the feed has more than %d items", maxElements)
	}
	return nil
}

// checkXML walks the document once: every element closed by its own name, no
// entities of its own, bounded in depth and number. It returns the root's xml:base.
func checkXML(text []byte) (base string, err error) {
	decoder := xml.NewDecoder(bytes.NewReader(text))
	// Names of entities and bare ampersands are often wrong in real feeds;
	// the structure, which this function checks, must be right.
	decoder.Strict = false
	var open []string
	elements := 0
	for {
		token, err := decoder.RawToken()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", malformed("the XML is broken or cut off: %v", err)
		}
		switch t := token.(type) {
		case xml.Directive:
			if bytes.Contains(bytes.ToUpper(t), []byte("<!ENTITY")) {
				return "", malformed("the document declares entities of its own, which are not read")
			}
		case xml.StartElement:
			if elements == 0 {
				if base, err = checkRoot(t); err != nil {
					return "", err
				}
			}
			open = append(open, t.Name.Space+":"+t.Name.Local)
			elements++
			if len(open) > maxDepth || elements > maxElements || len(t.Attr) > maxAttributes {
				return "", malformed("the document has more than %d levels, %d elements or %d attributes of one element",
					maxDepth, maxElements, maxAttributes)
			}
		case xml.EndElement:
			name := t.Name.Space + ":" + t.Name.Local
			if len(open) == 0 || open[len(open)-1] != name {
				return "", malformed("the XML is broken: </%s> closes nothing", strings.TrimPrefix(name, ":"))
			}
			open = open[:len(open)-1]
		}
	}
	if elements == 0 {
		return "", notAFeed("the document has no root element")
	}
	if len(open) > 0 {
		return "", malformed("the XML is cut off: <%s> is not closed", strings.TrimPrefix(open[len(open)-1], ":"))
	}
	return base, nil
}

func checkRoot(root xml.StartElement) (base string, err error) {
	switch name := strings.ToLower(root.Name.Local); name {
	case "rss", "rdf", "feed":
	case "html":
		return "", htmlPage()
	default:
		return "", notAFeed("the document's root is <" + clean(root.Name.Local) + ">, which is no feed")
	}
	for _, a := range root.Attr {
		if a.Name.Space == "xml" && a.Name.Local == "base" {
			return a.Value, nil
		}
	}
	return "", nil
}

var (
	declaration = regexp.MustCompile(`^<\?xml[^>]*\?>`)
	declared    = regexp.MustCompile(`encoding\s*=\s*["']([A-Za-z0-9._:-]+)["']`)
)

// decode turns the body into UTF-8 without a byte order mark and without the
// declaration of any other encoding. Text that is valid UTF-8 is taken for that
// whatever it is labelled; else the document's own label goes before the
// server's, which is a default more often than a statement.
func decode(body []byte, contentType string) ([]byte, error) {
	if bytes.HasPrefix(body, []byte{0xFE, 0xFF}) || bytes.HasPrefix(body, []byte{0xFF, 0xFE}) {
		utf16 := unicode.UTF16(unicode.BigEndian, unicode.ExpectBOM).NewDecoder()
		text, err := utf16.Bytes(body)
		if err != nil {
			return nil, malformed("the document begins as UTF-16 and is not")
		}
		body = text
	}
	body = bytes.TrimPrefix(body, []byte("\uFEFF"))
	body = bytes.TrimLeft(body, " \t\r\n")
	head := declaration.Find(body[:min(len(body), 512)])
	if !utf8.Valid(body) {
		label := ""
		if found := declared.FindSubmatch(head); found != nil {
			label = string(found[1])
		}
		if _, params, err := mime.ParseMediaType(contentType); err == nil && (label == "" || strings.EqualFold(label, "utf-8")) {
			label = params["charset"]
		}
		charset, err := htmlindex.Get(label)
		if err != nil || strings.EqualFold(label, "utf-8") {
			return nil, malformed("the text is not UTF-8 and names no charset that is known here (%q)", clean(label))
		}
		text, err := charset.NewDecoder().Bytes(body)
		if err != nil {
			return nil, malformed("the text is not %s, as it says", clean(label))
		}
		body = text
		head = declaration.Find(body[:min(len(body), 512)])
	}
	body = bytes.TrimLeft(body[len(head):], " \t\r\n")
	return bytes.Map(dropControl, body), nil
}
