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
	"autopost/internal/ingest/pull/item"
)

// mediaOf returns an item's enclosures, then its media:content pictures. The same file in several sizes
// (same path, other query) counts once.
func mediaOf(feedItem *gofeed.Item, base *url.URL) []pull.Media {
	var list []pull.Media
	seen := map[string]bool{}
	add := func(reference string, kind autopost.MediaKind) {
		address := item.Absolute(base, reference)
		file, _, _ := strings.Cut(address, "?")
		if address == "" || kind == "" || seen[file] || len(list) == item.MaxMedia {
			return
		}
		seen[file] = true
		list = append(list, pull.Media{Type: kind, URL: address})
	}
	for _, enclosure := range feedItem.Enclosures {
		if enclosure != nil {
			add(enclosure.URL, item.KindOf(enclosure.Type, enclosure.URL))
		}
	}
	module := feedItem.Extensions["media"]
	for _, content := range widestFirst(module["content"]) {
		addPicture(add, content)
	}
	for _, group := range module["group"] {
		// A group is one medium in several forms, each in its own file.
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
		content.Attrs["medium"] == "" && item.KindOf(content.Attrs["type"], reference) == autopost.MediaImage
	if picture && reference != "" {
		add(reference, autopost.MediaImage)
		return true
	}
	return false
}

// widestFirst replaces the forms of each file by its widest form. The order of the files stays.
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
