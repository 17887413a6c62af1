package rss

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"autopost/internal/ingest/pull"
)

const (
	// maxText is the longest text that the database takes, in characters.
	maxText = 100_000
	// maxTags and maxTag are the most and the longest tags that it takes.
	maxTags = 100
	maxTag  = 200
)

// makeBatch shapes entries, oldest first, into items. Only the last item's cursor
// holds the new validators and ends the first sight: were they set after an
// earlier chunk and the next one failed, the server would answer "not modified"
// and the rest would never be seen.
func makeBatch(cfg config, entries []entry, seen, after cursor) (pull.Batch, error) {
	first := seen.firstSight()
	var items []pull.Item
	publishable := 0
	for _, e := range entries {
		item := makeItem(cfg, e)
		if !item.Skip {
			publishable++
		}
		items = append(items, item)
	}
	between := seen
	for i, e := range entries {
		if !items[i].Skip {
			items[i].Skip = first && publishable > cfg.backfill
			publishable--
		}
		after.LastSeenID, after.LastSeenTS = e.ref, e.published
		step := &after
		if i < len(entries)-1 {
			step = &between
			if !first {
				between.LastSeenID, between.LastSeenTS = e.ref, e.published
			}
		}
		raw, err := json.Marshal(step)
		if err != nil {
			return pull.Batch{}, fmt.Errorf("encode cursor: %w", err)
		}
		items[i].Cursor = raw
	}
	last, err := json.Marshal(after)
	if err != nil {
		return pull.Batch{}, fmt.Errorf("encode cursor: %w", err)
	}
	return pull.Batch{Items: items, Cursor: last}, nil
}

// makeItem fills the template. What the filters drop, or what has nothing to
// publish, is only marked as seen, so that a later change of the filters does not
// publish old news.
func makeItem(cfg config, e entry) pull.Item {
	categories := strings.Join(mergeTags(e.categories), ", ")
	text := strings.NewReplacer("{title}", e.title, "{link}", e.link, "{summary}", e.summary,
		"{author}", e.author, "{categories}", categories).Replace(cfg.template)
	item := pull.Item{
		SourceRef:   e.ref,
		PublishedAt: e.published,
		Tags:        mergeTags(cfg.tags, e.categories),
		Payload: pull.Payload{
			SourceRef: e.ref,
			Text:      shorten(tidy(text), maxText),
			// The text is data: what looks like markup in it is none.
			ParseMode: "None",
		},
	}
	if cfg.media == mediaEnclosures {
		item.Payload.Media = e.media
	}
	empty := e.title == "" && e.link == "" && e.summary == "" && len(item.Payload.Media) == 0
	item.Skip = empty || !wantedBy(cfg, e)
	return item
}

// wantedBy applies the keyword lists, regardless of case.
func wantedBy(cfg config, e entry) bool {
	text := strings.ToLower(e.title + "\n" + e.summary)
	found := func(word string) bool { return strings.Contains(text, strings.ToLower(strings.TrimSpace(word))) }
	if slices.ContainsFunc(cfg.exclude, found) {
		return false
	}
	return len(cfg.include) == 0 || slices.ContainsFunc(cfg.include, found)
}

// mergeTags joins the source's tags and the item's categories, each once
// regardless of case, in this order.
func mergeTags(lists ...[]string) []string {
	var tags []string
	seen := map[string]bool{}
	for _, list := range lists {
		for _, tag := range list {
			tag = clean(tag)
			key := strings.ToLower(tag)
			if tag == "" || len([]rune(tag)) > maxTag || seen[key] || len(tags) == maxTags {
				continue
			}
			seen[key] = true
			tags = append(tags, tag)
		}
	}
	return tags
}
