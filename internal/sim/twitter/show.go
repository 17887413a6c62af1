package twitter

import (
	"fmt"
	"html"
	"slices"
	"strings"
)

const (
	// shownLength is the length of a long post's text in characters. The note has the whole.
	shownLength = 275
	// longPost is the shortest weighted length of a long post.
	longPost = defaultLimit + 1
)

// shown builds a text of an answer: escaped, with short links.
type shown struct {
	text strings.Builder
	urls []any
	// written is the length in characters.
	written int
}

func (s *shown) write(text string) {
	s.text.WriteString(text)
	s.written += len([]rune(text))
}

func (s *shown) link(short, long, display string) map[string]any {
	entity := map[string]any{"start": s.written, "end": s.written + len(short), "url": short, "expanded_url": long, "display_url": display}
	s.write(short)
	s.urls = append(s.urls, entity)
	return entity
}

// shownText is the first limit characters of the post's text.
func (p *post) shownText(limit int) *shown {
	s := &shown{}
	runes := []rune(p.text)
	limit = min(limit, len(runes))
	at := 0
	for _, l := range p.links {
		if l.to > limit {
			limit = min(limit, l.from)
			break
		}
		s.write(html.EscapeString(string(runes[at:l.from])))
		long := withProtocol(l.long)
		_, display, _ := strings.Cut(long, "://")
		s.link(l.short, long, display)["unwound_url"] = long
		at = l.to
	}
	s.write(html.EscapeString(string(runes[at:limit])))
	if limit < len(runes) {
		s.write("…")
	}
	return s
}

// linkMedia appends the link that X adds to the text of a post with media.
func (p *post) linkMedia(s *shown) {
	if p.mediaLink == "" {
		return
	}
	if s.written > 0 {
		s.write(" ")
	}
	kind := p.media[0].class()
	address := fmt.Sprintf("https://x.com/%s/status/%s/%s/1", p.owner.Username, p.id, kind)
	s.link(p.mediaLink, address, "pic.x.com/"+p.mediaLink[len("https://t.co/"):])["media_key"] = p.media[0].key()
}

// isLong reports whether answers cut the text and add a note.
func (p *post) isLong() bool { return WeightedLength(p.text) >= longPost }

// show returns the post with the requested optional fields.
func (p *post) show(fields map[string]bool) map[string]any {
	whole := len([]rune(p.text))
	limit := whole
	if p.isLong() {
		limit = shownLength
	}
	text := p.shownText(limit)
	p.linkMedia(text)
	out := map[string]any{"id": p.id, "text": text.text.String()}
	for field := range fields {
		if value := p.field(field, text); value != nil {
			out[field] = value
		}
	}
	return out
}

// field returns the value of an optional field; nil without one.
func (p *post) field(name string, text *shown) any {
	switch name {
	case "created_at":
		return timestamp(p.date)
	case "author_id":
		return p.owner.ID
	case "conversation_id":
		return p.conversation
	case "made_with_ai":
		return p.madeByAI
	case "edit_history_tweet_ids", "edit_history_post_ids":
		return append(slices.Clone(p.history), p.id)
	case "entities":
		if len(text.urls) > 0 {
			return map[string]any{"urls": text.urls}
		}
	case "attachments":
		if len(p.media) > 0 {
			return map[string]any{"media_keys": p.mediaKeys()}
		}
	case "note_post", "note_tweet":
		if p.isLong() {
			note := p.shownText(len([]rune(p.text)))
			value := map[string]any{"text": note.text.String()}
			if len(note.urls) > 0 {
				value["entities"] = map[string]any{"urls": note.urls}
			}
			return value
		}
	case "referenced_posts", "referenced_tweets":
		if p.replyTo != "" {
			return []any{map[string]any{"type": "replied_to", "id": p.replyTo}}
		}
	}
	return nil
}

func (p *post) mediaKeys() []string {
	keys := make([]string, 0, len(p.media))
	for _, m := range p.media {
		keys = append(keys, m.key())
	}
	return keys
}
