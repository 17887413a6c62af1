package rss

import (
	"bytes"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"autopost/internal/ingest/pull/item"
)

// FuzzFeed: any document is read or rejected. Items are acceptable to the database: valid text, one
// item per reference, absolute addresses of bounded length. Bytes that are not UTF-8 count as U+FFFD.
func FuzzFeed(f *testing.F) {
	files, err := filepath.Glob("testdata/*")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil || strings.HasSuffix(file, ".golden") {
			continue
		}
		f.Add(raw, "text/xml")
		f.Add(raw[:len(raw)/2], "application/xml; charset=windows-1251")
	}
	f.Add([]byte("<rss><channel><item><title>a\xff\xfeb</title></item></channel></rss>"), "text/xml")
	f.Add([]byte(`<rss xml:base="a"><channel><item xml:base="//[" ><link href="%zz" url='x'/></item></channel></rss>`), "")
	address := &url.URL{Scheme: "https", Host: "feed.example", Path: "/a/b"}
	f.Fuzz(func(t *testing.T, body []byte, contentType string) {
		read, err := parse(body, contentType, address)
		if declared := strings.Contains(contentType, "charset") || bytes.Contains(body, []byte("encoding")); !declared && !utf8.Valid(body) {
			mended, mendedErr := parse(bytes.ToValidUTF8(body, []byte("\ufffd")), contentType, address)
			if (err == nil) != (mendedErr == nil) || len(read.entries) != len(mended.entries) {
				t.Errorf("%d entries, %v; with its bad bytes replaced %d entries, %v", len(read.entries), err, len(mended.entries), mendedErr)
			}
		}
		if err != nil {
			return
		}
		batch, err := item.Batch(item.Options{Template: defaultTemplate}, read.entries, item.Cursor{FirstSeenDone: true}, item.Cursor{FirstSeenDone: true})
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, feedItem := range batch.Items {
			if feedItem.SourceRef == "" || seen[feedItem.SourceRef] || len(feedItem.SourceRef) > 512 {
				t.Errorf("reference %q", feedItem.SourceRef)
			}
			seen[feedItem.SourceRef] = true
			raw, err := json.Marshal(feedItem)
			if err != nil || !utf8.Valid(raw) || strings.Contains(string(raw), `\u0000`) {
				t.Errorf("item %q: %v", raw, err)
			}
			addresses := []string{}
			if feedItem.Payload.Link != "" {
				addresses = append(addresses, feedItem.Payload.Link)
			}
			for _, m := range feedItem.Payload.Media {
				addresses = append(addresses, m.URL)
			}
			for _, address := range addresses {
				if u, err := url.Parse(address); err != nil || !item.Web(u) || u.User != nil || len(address) > item.MaxAddress {
					t.Errorf("address %q", address)
				}
			}
		}
	})
}
