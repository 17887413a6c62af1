package rss

import (
	"bytes"
	"mime"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/unicode"

	"autopost/internal/ingest/pull/item"
)

const (
	// A feed with at most freeDamage unreadable characters is read. One with more is rejected if
	// they are more than one in damageRatio: its charset is not the one that it names.
	freeDamage  = 16
	damageRatio = 20
	// Text is damaged UTF-8 if it has at least this many valid multi-byte characters per invalid byte.
	// Text in other charsets has almost no byte sequences that are valid UTF-8.
	utf8Ratio = 10
)

var (
	declaration = regexp.MustCompile(`^<\?xml[^>]*\?>`)
	declared    = regexp.MustCompile(`encoding\s*=\s*["']([A-Za-z0-9._:-]+)["']`)
	numeric     = regexp.MustCompile(`&#(?:[xX]0*[0-9a-fA-F]{1,6}|0*[0-9]{1,7});`)
)

// defaults are labels that servers send by default. The document's own label takes precedence over
// them.
var defaults = []string{"utf-8", "us-ascii", "ascii", "iso-8859-1", "latin1"}

// decode returns the body as UTF-8 without byte order mark and XML declaration. It is as lenient
// as browsers (WHATWG Encoding Standard): unreadable bytes become U+FFFD. Only text that is
// mostly unreadable is an error.
func decode(body []byte, contentType string) ([]byte, error) {
	charset, labels := charsetOf(body, contentType)
	text, err := charset.NewDecoder().Bytes(body)
	if err != nil {
		return nil, malformed("the text is not in the charset that it names: %v", err)
	}
	damage := bytes.Count(text, []byte("\uFFFD")) - bytes.Count(body, []byte("\uFFFD"))
	if damage > max(freeDamage, utf8.RuneCount(text)/damageRatio) {
		return nil, malformed("%d characters are not in the charset that the feed names (%q); the feed must name its charset", damage, labels)
	}
	text = bytes.TrimPrefix(text, []byte("\uFEFF"))
	text = bytes.TrimLeft(text, " \t\r\n")
	head := declaration.Find(text[:min(len(text), 512)])
	text = bytes.TrimLeft(text[len(head):], " \t\r\n")
	if bytes.ContainsFunc(text, func(r rune) bool { return xmlRune(r) != r }) {
		text = bytes.Map(xmlRune, text)
	}
	if bytes.Contains(text, []byte("&#")) {
		text = numeric.ReplaceAllFunc(text, repairReference)
	}
	return text, nil
}

// charsetOf returns the charset of a body, and the labels that its header and declaration give.
// The first of these decides: a byte order mark, or the zeros of UTF-16; text that is UTF-8
// except for a few bytes, whatever its label; the labels; UTF-8.
func charsetOf(body []byte, contentType string) (encoding.Encoding, string) {
	switch {
	case bytes.HasPrefix(body, []byte("\uFEFF")):
		return unicode.UTF8, "utf-8"
	case bytes.HasPrefix(body, []byte{0xFE, 0xFF}), bytes.HasPrefix(body, []byte{0, '<'}):
		return unicode.UTF16(unicode.BigEndian, unicode.UseBOM), "utf-16be"
	case bytes.HasPrefix(body, []byte{0xFF, 0xFE}), bytes.HasPrefix(body, []byte{'<', 0}):
		return unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), "utf-16le"
	}
	labels := labelsOf(body, contentType)
	all := item.Clean(strings.Join(labels, ", "))
	isUTF8 := looksLikeUTF8(body)
	for _, label := range labels {
		charset, name := byLabel(label)
		// ISO-2022-JP has only bytes of ASCII, so it is always valid UTF-8.
		if charset != nil && name != "utf-8" && (!isUTF8 || name == "iso-2022-jp" && bytes.IndexByte(body, 0x1B) >= 0) {
			return charset, all
		}
	}
	return unicode.UTF8, all
}

// byLabel returns the charset of a label and its name; nil if the label is unknown.
func byLabel(label string) (encoding.Encoding, string) {
	charset, err := htmlindex.Get(label)
	if err != nil {
		return nil, ""
	}
	name, err := htmlindex.Name(charset)
	switch {
	case err != nil, name == "replacement":
		return nil, ""
	case strings.HasPrefix(name, "utf-16"):
		// A label that could be read as ASCII is not in UTF-16.
		return unicode.UTF8, "utf-8"
	case name == "x-user-defined":
		return charmap.Windows1252, "windows-1252"
	}
	return charset, name
}

// labelsOf returns the charset labels of header and declaration, in their order of precedence.
func labelsOf(body []byte, contentType string) []string {
	fromHeader, fromDocument := "", ""
	if _, params, err := mime.ParseMediaType(contentType); err == nil {
		fromHeader = strings.ToLower(strings.TrimSpace(params["charset"]))
	}
	start := bytes.TrimLeft(body[:min(len(body), 512)], " \t\r\n")
	if found := declared.FindSubmatch(declaration.Find(start)); found != nil {
		fromDocument = strings.ToLower(string(found[1]))
	}
	labels := []string{fromHeader, fromDocument}
	if slices.Contains(defaults, fromHeader) {
		labels = []string{fromDocument, fromHeader}
	}
	return slices.DeleteFunc(labels, func(label string) bool { return label == "" })
}

// looksLikeUTF8 reports whether text is UTF-8, or UTF-8 with a few damaged bytes.
func looksLikeUTF8(text []byte) bool {
	if utf8.Valid(text) {
		return true
	}
	valid, invalid := 0, 0
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && size == 1:
			invalid++
		case size > 1:
			valid++
		}
		text = text[size:]
	}
	return valid >= invalid*utf8Ratio
}

// xmlRune maps characters that an XML parser rejects: controls are dropped, others become U+FFFD.
func xmlRune(r rune) rune {
	if r == 0xFFFE || r == 0xFFFF {
		return utf8.RuneError
	}
	return item.DropControl(r)
}

// repairReference replaces a numeric character reference that would make the XML parser reject the document.
func repairReference(reference []byte) []byte {
	digits, base := string(reference[2:len(reference)-1]), 10
	if digits[0] == 'x' || digits[0] == 'X' {
		digits, base = digits[1:], 16
	}
	n, err := strconv.ParseUint(digits, base, 32)
	r := rune(n)
	switch {
	case err != nil || n == 0 || !utf8.ValidRune(r):
		return []byte("\uFFFD")
	case xmlRune(r) < 0:
		return nil
	case xmlRune(r) != r:
		return []byte("\uFFFD")
	}
	return reference
}
