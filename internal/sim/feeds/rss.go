package feeds

import (
	"fmt"
	"strings"
	"time"

	"golang.org/x/text/encoding/htmlindex"
)

// RSS describes a generated feed.
type RSS struct {
	// Items is the number of items. They are numbered from First (1 if 0), dated a minute apart, newest
	// first.
	Items, First int
	// Charset encodes the document and is declared in it; UTF-8 if empty.
	Charset string
	// Size is the minimum size of the document in bytes; the items are padded.
	Size int
}

// Document returns the feed. Item n has the guid "item-n" and the title "Item n"; in charsets other
// than UTF-8 the title has "Новость" before the number.
func (r RSS) Document() ([]byte, error) {
	first := max(1, r.First)
	word, charset := "Item", "utf-8"
	if r.Charset != "" {
		word, charset = "Новость", r.Charset
	}
	padding := ""
	if r.Items > 0 {
		padding = strings.Repeat("padding ", r.Size/r.Items/8+1)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<?xml version="1.0" encoding="%s"?><rss version="2.0"><channel><title>Generated</title><link>https://feed.example/</link>`, charset)
	for n := first + r.Items - 1; n >= first; n-- {
		at := time.Date(2026, 1, 1, 0, n, 0, 0, time.UTC)
		fmt.Fprintf(&b, `<item><guid isPermaLink="false">item-%d</guid><title>%s %d</title><link>https://feed.example/%d</link><pubDate>%s</pubDate><description>%s</description></item>`,
			n, word, n, n, at.Format(time.RFC1123Z), padding)
	}
	b.WriteString(`</channel></rss>`)
	if r.Charset == "" {
		return []byte(b.String()), nil
	}
	encoding, err := htmlindex.Get(r.Charset)
	if err != nil {
		return nil, fmt.Errorf("charset %q: %w", r.Charset, err)
	}
	return encoding.NewEncoder().Bytes([]byte(b.String()))
}
