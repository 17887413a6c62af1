package rss

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/mmcdole/gofeed"
	ext "github.com/mmcdole/gofeed/extensions"

	"autopost"
	"autopost/internal/ingest/pull"
	"autopost/internal/ingest/pull/shape"
)

// mediaOf lists an item's enclosures, then its media:content pictures. The same
// file in several sizes (one path, another query) counts once.
func mediaOf(item *gofeed.Item, base *url.URL) []pull.Media {
	var list []pull.Media
	seen := map[string]bool{}
	add := func(reference string, kind autopost.MediaKind) {
		address := shape.Absolute(base, reference)
		file, _, _ := strings.Cut(address, "?")
		if address == "" || kind == "" || seen[file] || len(list) == shape.MaxMedia {
			return
		}
		seen[file] = true
		list = append(list, pull.Media{Type: kind, URL: address})
	}
	for _, enclosure := range item.Enclosures {
		if enclosure != nil {
			add(enclosure.URL, shape.KindOf(enclosure.Type, enclosure.URL))
		}
	}
	module := item.Extensions["media"]
	for _, content := range widestFirst(module["content"]) {
		addPicture(add, content)
	}
	for _, group := range module["group"] {
		// A group is one medium in several forms, each a file of its own.
		forms := slices.Clone(group.Children["content"])
		slices.SortStableFunc(forms, func(a, b ext.Extension) int { return width(b) - width(a) })
		for _, content := range forms {
			if addPicture(add, content) {
				break
			}
		}
	}
	return list
}

func addPicture(add func(string, autopost.MediaKind), content ext.Extension) bool {
	reference := content.Attrs["url"]
	picture := content.Attrs["medium"] == "image" ||
		content.Attrs["medium"] == "" && shape.KindOf(content.Attrs["type"], reference) == autopost.MediaImage
	if picture && reference != "" {
		add(reference, autopost.MediaImage)
		return true
	}
	return false
}

// widestFirst moves the widest form of each file before its other forms and
// leaves the order of the files as it is.
func widestFirst(contents []ext.Extension) []ext.Extension {
	widest := map[string]int{}
	var out []ext.Extension
	for _, content := range contents {
		file, _, _ := strings.Cut(content.Attrs["url"], "?")
		at, again := widest[file]
		if !again {
			widest[file] = len(out)
			out = append(out, content)
		} else if width(content) > width(out[at]) {
			out[at] = content
		}
	}
	return out
}

func width(content ext.Extension) int {
	n, err := strconv.Atoi(content.Attrs["width"])
	if err != nil {
		return 0
	}
	return n
}
