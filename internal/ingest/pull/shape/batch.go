package shape

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"autopost/internal/ingest/pull"
)

const (
	// maxText is the longest text that the database takes, in characters.
	maxText = 100_000
	// maxTags and maxTag are the most and the longest tags that it takes.
	maxTags = 100
	maxTag  = 200
)

// Cursor is the cursor_json of a source. The database itself reads more, wait_seconds and moved_to.
type Cursor struct {
	// URLHash tells whether ETag, LastModified and MovedTo belong to the configured URL.
	// It is a hash because the URL may hold a key.
	URLHash      string `json:"url_hash,omitempty"`
	ETag         string `json:"etag,omitempty"`
	LastModified string `json:"last_modified,omitempty"`
	// MovedTo is where a permanent redirect led.
	MovedTo string `json:"moved_to,omitempty"`
	// WaitSeconds is how long the source's own hints say that nothing new will come.
	WaitSeconds int `json:"wait_seconds,omitempty"`
	// ReadAt is when the whole source was last read, not only asked whether it changed.
	ReadAt     *time.Time `json:"read_at,omitempty"`
	LastSeenTS *time.Time `json:"last_seen_ts,omitempty"`
	LastSeenID string     `json:"last_seen_id,omitempty"`
	// After is the value of a query's cursor column up to which all rows were taken.
	After *string `json:"after,omitempty"`
	// Next is the address, or the cursor, of the page to go on from.
	Next string `json:"next,omitempty"`
	// FirstSeenDone: a poll has gone through, so what is new now is news.
	FirstSeenDone bool `json:"first_seen_done,omitempty"`
	// More: the poll goes on behind this cursor.
	More bool `json:"more,omitempty"`
}

// ParseCursor reads cursor_json; the zero cursor where there is none.
func ParseCursor(raw json.RawMessage) (Cursor, error) {
	var c Cursor
	if len(raw) == 0 {
		return c, nil
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return c, &pull.Failure{Code: "pull_cursor", Message: "cursor_json cannot be read; set it to {} to start over"}
	}
	c.More = false // of a poll that broke off
	return c, nil
}

// Encode is the cursor as cursor_json.
func (c Cursor) Encode() (json.RawMessage, error) {
	raw, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encode cursor: %w", err)
	}
	return raw, nil
}

// FirstSight reports whether no poll of the source has gone through yet.
func (c Cursor) FirstSight() bool {
	return !c.FirstSeenDone && c.ETag == "" && c.LastModified == "" && c.LastSeenID == "" && c.LastSeenTS == nil && c.After == nil
}

// Batch shapes entries, oldest first, into items. Only the last item's cursor
// holds what is new in after and ends the first sight: were it set after an
// earlier chunk and the next one failed, the source would answer "not modified"
// and the rest would never be seen. after.FirstSeenDone false: the first sight goes on.
func Batch(o Options, entries []Entry, seen, after Cursor) (pull.Batch, error) {
	first := seen.FirstSight()
	items := make([]pull.Item, 0, len(entries))
	publishable := 0
	for _, e := range entries {
		item := o.item(e)
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
				// Rows that share a value are behind the cursor all together or not at all.
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

// item fills the template. What the filters drop, or what has nothing to publish,
// is only marked as seen, so that a later change of the filters does not publish
// old news.
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
			// The text is data: what looks like markup in it is none.
			ParseMode: "None",
		},
	}
	if !o.NoMedia {
		item.Payload.Media = e.Media
	}
	item.SkipReason = o.filter.refuses(e)
	if e.Title == "" && e.Link == "" && e.Text == "" && len(item.Payload.Media) == 0 {
		item.SkipReason = reasonEmpty
	}
	item.Skip = item.SkipReason != ""
	return item
}

// mergeTags joins the source's tags and the item's categories, each once
// regardless of case, in this order.
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
