package rss

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"autopost/internal/ingest/pull/shape"
)

// FuzzFeed: whatever a server sends is read or refused, and what is read is what
// the database takes: valid text, one reference an item, whole addresses.
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
	f.Add([]byte(`<rss xml:base="a"><channel><item xml:base="//[" ><link href="%zz" url='x'/></item></channel></rss>`), "")
	address := &url.URL{Scheme: "https", Host: "feed.example", Path: "/a/b"}
	f.Fuzz(func(t *testing.T, body []byte, contentType string) {
		read, err := parse(body, contentType, address)
		if err != nil {
			return
		}
		batch, err := shape.Batch(shape.Options{Template: defaultTemplate}, read.entries, shape.Cursor{FirstSeenDone: true}, shape.Cursor{FirstSeenDone: true})
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, item := range batch.Items {
			if item.SourceRef == "" || seen[item.SourceRef] || len(item.SourceRef) > 512 {
				t.Errorf("reference %q", item.SourceRef)
			}
			seen[item.SourceRef] = true
			raw, err := json.Marshal(item)
			if err != nil || !utf8.Valid(raw) || strings.Contains(string(raw), `\u0000`) {
				t.Errorf("item %q: %v", raw, err)
			}
			for _, m := range item.Payload.Media {
				if u, err := url.Parse(m.URL); err != nil || !shape.Web(u) || u.User != nil {
					t.Errorf("medium %q", m.URL)
				}
			}
		}
	})
}
