package web

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"autopost/internal/api"
)

// mediaFilter is the filter of the list, as its address has it.
type mediaFilter struct {
	Kind   string
	Unused bool
	Limit  string
	Cursor string
}

// mediaKinds are the kinds of media, mediaLimits the lengths of a page.
var (
	mediaKinds  = []string{"image", "video", "audio", "animation", "file"}
	mediaLimits = []string{"25", "50", "100"}
)

func mediaFilterOf(q url.Values) mediaFilter {
	f := mediaFilter{Kind: q.Get("kind"), Unused: q.Get("unused") != "", Limit: q.Get("limit"), Cursor: q.Get("cursor")}
	if !slices.Contains(mediaKinds, f.Kind) {
		f.Kind = ""
	}
	if !slices.Contains(mediaLimits, f.Limit) {
		f.Limit = mediaLimits[0]
	}
	return f
}

// query is the address of a list, of a page or of the operation, with this filter.
func (f mediaFilter) query(path, cursor string) string {
	unused := ""
	if f.Unused {
		unused = "true"
	}
	return addressOf(path, "kind", f.Kind, "unused", unused, "limit", f.Limit, "cursor", cursor)
}

// mediaList is a page of media.
type mediaList struct {
	Filter mediaFilter
	Rows   page[api.MediumRow]
	Fault  string
}

func (s *server) media(v *view) {
	list := mediaList{Filter: mediaFilterOf(v.r.URL.Query())}
	status := http.StatusOK
	if err := v.get(list.Filter.query("/media", list.Filter.Cursor), &list.Rows); v.fault(err) != "" {
		list.Fault, status = v.fault(err), http.StatusUnprocessableEntity
	} else if err != nil {
		v.fail(err)
		return
	}
	v.show(status, "media", mediaPage(v, list), mediaPanel(v, list))
}

// shownTypes are the types of pictures that the API serves.
var shownTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// picture returns the address of the bytes of a picture of the workspace.
func picture(blobRef string) string { return "/api/v1/media/" + blobRef }

// isPicture reports whether a page can show a medium.
func isPicture(m api.MediumRow) bool {
	return !m.Forgotten && m.ContentType != nil && slices.Contains(shownTypes, *m.ContentType)
}

// mediumSize is the size of a medium in words: bytes, and pixels of a picture.
func mediumSize(m api.MediumRow) string {
	var parts []string
	if m.SizeBytes != nil {
		parts = append(parts, bytesOf(*m.SizeBytes))
	}
	if m.Width != nil && m.Height != nil && *m.Width > 0 {
		parts = append(parts, fmt.Sprintf("%d × %d", *m.Width, *m.Height))
	}
	return strings.Join(parts, " · ")
}

// bytesOf is a number of bytes for people.
func bytesOf(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d B", n)
}
