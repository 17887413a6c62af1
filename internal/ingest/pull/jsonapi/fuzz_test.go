package jsonapi

import (
	"net/url"
	"testing"
)

// No document and no pointer make the mapping panic, and every link is an absolute address.
func FuzzMapping(f *testing.F) {
	f.Add([]byte(`{"a": [{"b/c": 1, "~": "x", "": [true, null]}]}`), "/a", "/b~1c", "/~0")
	f.Add([]byte(`[[1, 2], "x"]`), "", "/1", "/0/-1")
	f.Add([]byte(`{"a": {"0": []}}`), "/a/0", "", "/")
	address := &url.URL{Scheme: "https", Host: "api.example", Path: "/v1/"}
	f.Fuzz(func(t *testing.T, body []byte, items, id, link string) {
		var c config
		var err error
		if c.items, err = parsePointer("items", items); err != nil {
			return
		}
		if err := c.setMapOf(id, link); err != nil {
			return
		}
		document, err := decode(body)
		if err != nil {
			return
		}
		entries, err := c.entries(document, address)
		if err != nil {
			return
		}
		for _, e := range entries {
			if e.Ref() == "" {
				t.Error("no reference")
			}
			if u, err := url.Parse(e.Link); err != nil || e.Link != "" && u.Host == "" {
				t.Errorf("link %q", e.Link)
			}
		}
	})
}

func (c *config) setMapOf(id, link string) error {
	c.fields = map[string]pointer{}
	return c.setMap(map[string]string{"id": id, "link": link, "text": id, "tags": link, "media_url": link, "published": id})
}
