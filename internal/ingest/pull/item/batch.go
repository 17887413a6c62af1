package item

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"autopost/internal/ingest/pull"
)

const (
	// maxText is the longest text that the database accepts, in characters.
	maxText = 100_000
	// maxTags is the most tags that it accepts, maxTag the longest tag in characters.
	maxTags = 100
	maxTag  = 200
)

// Cursor is the cursor_json of a source. The database reads wait_seconds, moved_to and more.
type Cursor struct {
	// URLHash shows whether ETag, LastModified and MovedTo belong to the configured URL. It is a hash because the URL
	// may contain a key.
	URLHash      string `json:"url_hash,omitempty"`
	ETag         string `json:"etag,omitempty"`
	LastModified string `json:"last_modified,omitempty"`
	// MovedTo is the target of a permanent redirect.
	MovedTo string `json:"moved_to,omitempty"`
	// WaitSeconds is the time without new items by the hints of the source.
	WaitSeconds int `json:"wait_seconds,omitempty"`
	// ReadAt is the last time when the whole source was read, not only its validators.
	ReadAt     *time.Time `json:"read_at,omitempty"`
	LastSeenTS *time.Time `json:"last_seen_ts,omitempty"`
	LastSeenID string     `json:"last_seen_id,omitempty"`
	// After is the value of the cursor column up to which all rows were read.
	After *string `json:"after,omitempty"`
	// Next is the address or the cursor of the next page.
	Next string `json:"next,omitempty"`
	// FirstSeenDone means that a poll was complete, so later items are new.
	FirstSeenDone bool `json:"first_seen_done,omitempty"`
	// More means that the poll continues after this cursor.
	More bool `json:"more,omitempty"`
}

// ParseCursor reads cursor_json. An empty one is the zero cursor.
func ParseCursor(raw json.RawMessage) (Cursor, error) {
	var c Cursor
	if len(raw) == 0 {
		return c, nil
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return c, &pull.Failure{Code: "pull_cursor", Message: "cursor_json must be a JSON object; set it to {} to start again"}
	}
	c.More = false // it may be set after an interrupted poll
	return c, nil
}

// Encode returns the cursor as cursor_json.
func (c Cursor) Encode() (json.RawMessage, error) {
	raw, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encode cursor: %w", err)
	}
	return raw, nil
}

// FirstSight reports whether no poll of the source was complete yet.
func (c Cursor) FirstSight() bool {
	return !c.FirstSeenDone && c.ETag == "" && c.LastModified == "" && c.LastSeenID == "" && c.LastSeenTS == nil && c.After == nil
}

// Batch makes items of entries, oldest first. Only the cursor of the last item contains the new values of after and ends
// the first sight. If an earlier chunk stored them and the next chunk failed, the source would answer "not modified"
// and the remaining items would be lost. If after.FirstSeenDone is false, the first sight continues.
func Batch(o Options, entries []Entry, seen, after Cursor) (pull.Batch, error) {
	first := seen.FirstSight()
	items := make([]pull.Item, 0, len(entries))
	publishable, texts := 0, 0
	for _, e := range entries {
		item := o.item(e)
		if texts += len(item.Payload.Text); texts > maxTexts {
			return pull.Batch{}, TooLarge("the items make more than %d bytes of text; shorten template", maxTexts)
		}
		if !item.Skip {
			publishable++
		}
		items = append(items, item)
	}
	between := seen
	between.More = true
	for i, e := range entries {
		if !items[i].Skip {
			if first && publishable > o.Backfill {
				items[i].Skip, items[i].SkipReason = true, reasonBackfill
			}
			publishable--
		}
		if after.FirstSeenDone {
			after.LastSeenID, after.LastSeenTS = items[i].SourceRef, e.Published
		}
		step := &after
		if i < len(entries)-1 {
			step = &between
			if !first {
				between.LastSeenID, between.LastSeenTS = items[i].SourceRef, e.Published
				// The cursor must not divide rows with the same value.
				if e.After != entries[i+1].After {
					between.After = &e.After
				}
			}
		} else if e.After != "" {
			after.After = &e.After
		}
		raw, err := step.Encode()
		if err != nil {
			return pull.Batch{}, err
		}
		items[i].Cursor = raw
	}
	last, err := after.Encode()
	return pull.Batch{Items: items, Cursor: last}, err
}

// item fills the template. An item that the filters drop, or without content, is only marked as seen. So a later change
// of the filters does not publish old items.
func (o Options) item(e Entry) pull.Item {
	ref := e.Ref()
	categories := strings.Join(mergeTags(e.Categories), ", ")
	text := strings.NewReplacer("{title}", e.Title, "{link}", e.Link, "{summary}", e.Text, "{text}", e.Text,
		"{author}", e.Author, "{categories}", categories).Replace(o.Template)
	item := pull.Item{
		SourceRef:   ref,
		PublishedAt: e.Published,
		Tags:        mergeTags(o.Tags, e.Categories),
		Payload: pull.Payload{
			SourceRef: ref,
			Text:      Shorten(Tidy(text), maxText),
			// The text is data and may look like markup.
			ParseMode: "None",
		},
	}
	if !o.NoMedia {
		item.Payload.Media = e.Media
	}
	if strings.Contains(o.Template, "{link}") {
		// The database replaces the link in the text by its canonical form. So an item whose link differs in tracking
		// parameters alone is not published again.
		item.Payload.Link = e.Link
	}
	item.SkipReason = o.filter.refuses(e)
	if e.Title == "" && e.Link == "" && e.Text == "" && len(item.Payload.Media) == 0 {
		item.SkipReason = reasonEmpty
	}
	item.Skip = item.SkipReason != ""
	return item
}

// mergeTags joins lists of tags in order. A tag that differs only by case from an earlier one is dropped.
func mergeTags(lists ...[]string) []string {
	var tags []string
	seen := map[string]bool{}
	for _, list := range lists {
		for _, tag := range list {
			tag = Clean(tag)
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
