package rss

import (
	"bytes"
	"mime"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/unicode"

	"autopost/internal/ingest/pull/shape"
)

var (
	declaration = regexp.MustCompile(`^<\?xml[^>]*\?>`)
	declared    = regexp.MustCompile(`encoding\s*=\s*["']([A-Za-z0-9._:-]+)["']`)
)

// defaults are labels that servers send without having looked: the document's own goes before them.
var defaults = []string{"utf-8", "us-ascii", "ascii", "iso-8859-1", "latin1"}

// decode turns the body into UTF-8 without a byte order mark and without an XML
// declaration. In this order: a byte order mark, or the zeros that show UTF-16
// without one; text that is valid UTF-8 is taken for that, whatever it is labelled;
// the charset of the server's header; that of the document's declaration.
func decode(body []byte, contentType string) ([]byte, error) {
	text, charset := body, encoding.Encoding(nil)
	switch {
	case bytes.HasPrefix(body, []byte("\uFEFF")):
		text = body[3:]
	case bytes.HasPrefix(body, []byte{0xFE, 0xFF}), bytes.HasPrefix(body, []byte{0, '<'}):
		charset = unicode.UTF16(unicode.BigEndian, unicode.UseBOM)
	case bytes.HasPrefix(body, []byte{0xFF, 0xFE}), bytes.HasPrefix(body, []byte{'<', 0}):
		charset = unicode.UTF16(unicode.LittleEndian, unicode.UseBOM)
	default:
		var err error
		if charset, err = labelled(body, contentType); err != nil {
			return nil, err
		}
	}
	if charset != nil {
		var err error
		if text, err = charset.NewDecoder().Bytes(body); err != nil {
			return nil, malformed("the text is not in the charset that it claims")
		}
	}
	text = bytes.TrimLeft(text, " \t\r\n")
	head := declaration.Find(text[:min(len(text), 512)])
	text = bytes.TrimLeft(text[len(head):], " \t\r\n")
	if !utf8.Valid(text) {
		return nil, malformed("the text is not UTF-8, as it claims")
	}
	if bytes.ContainsFunc(text, func(r rune) bool { return shape.DropControl(r) < 0 }) {
		text = bytes.Map(shape.DropControl, text)
	}
	return text, nil
}

// labelled is the charset that header and declaration name; nil for UTF-8.
func labelled(body []byte, contentType string) (encoding.Encoding, error) {
	fromHeader, fromDocument := "", ""
	if _, params, err := mime.ParseMediaType(contentType); err == nil {
		fromHeader = strings.ToLower(strings.TrimSpace(params["charset"]))
	}
	start := bytes.TrimLeft(body[:min(len(body), 512)], " \t\r\n")
	if found := declared.FindSubmatch(declaration.Find(start)); found != nil {
		fromDocument = strings.ToLower(string(found[1]))
	}
	labels := []string{fromHeader, fromDocument}
	if slices.Contains(defaults, fromHeader) && fromDocument != "" {
		labels = []string{fromDocument, fromHeader}
	}
	// Escapes make text of seven bits out of any charset; nothing else is valid UTF-8 by chance.
	if utf8.Valid(body) && !bytes.ContainsRune(body, 0x1B) {
		return nil, nil
	}
	for _, label := range labels {
		charset, err := htmlindex.Get(label)
		if err != nil || charset == unicode.UTF8 {
			continue
		}
		return charset, nil
	}
	if utf8.Valid(body) {
		return nil, nil
	}
	return nil, malformed("the text is not UTF-8 and names no charset that is known here (%q)", shape.Clean(strings.Join(slices.DeleteFunc(labels, func(l string) bool { return l == "" }), ", ")))
}
