package twitter

import (
	"fmt"
	"html"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	"autopost/internal/sim"
)

var postFields = []string{
	"article", "attachments", "author_id", "card_uri", "community_id", "context_annotations", "conversation_id", "created_at", "display_text_range",
	"edit_controls", "edit_history_tweet_ids", "entities", "geo", "id", "in_reply_to_user_id", "lang", "made_with_ai", "media_metadata", "note_tweet",
	"possibly_sensitive", "public_metrics", "referenced_tweets", "reply_settings", "source", "text",
}

var timelineParams = []string{
	"max_results", "since_id", "until_id", "start_time", "end_time", "exclude", "pagination_token", "tweet.fields", "expansions", "media.fields", "user.fields",
}

// linkMarks are the links of a text, for the log.
func linkMarks(text string) []sim.Mark {
	runes := []rune(text)
	var marks []sim.Mark
	for _, at := range findURLs(runes) {
		long := string(runes[at.from:at.to])
		marks = append(marks, sim.Mark{
			Type: "url", From: len(utf16.Encode(runes[:at.from])), Length: len(utf16.Encode(runes[at.from:at.to])), URL: withProtocol(long),
		})
	}
	return marks
}

func withProtocol(url string) string {
	if strings.HasPrefix(strings.ToLower(url), "http") && strings.Contains(url, "://") {
		return url
	}
	return "http://" + url
}

// show is the post as the API answers it; of the optional fields those that are asked for.
func (p *post) show(fields []string) map[string]any {
	var b strings.Builder
	var urls []any
	runes := []rune(p.text)
	written, at := 0, 0
	write := func(text string) {
		b.WriteString(text)
		written += len([]rune(text))
	}
	entity := func(short, long, display string) map[string]any {
		e := map[string]any{"start": written, "end": written + len(short), "url": short, "expanded_url": long, "display_url": display}
		write(short)
		return e
	}
	for _, l := range p.links {
		write(html.EscapeString(string(runes[at:l.from])))
		long := withProtocol(l.long)
		_, display, _ := strings.Cut(long, "://")
		e := entity(l.short, long, display)
		e["unwound_url"] = long
		urls = append(urls, e)
		at = l.to
	}
	write(html.EscapeString(string(runes[at:])))
	if p.mediaLink != "" {
		if written > 0 {
			write(" ")
		}
		kind := p.media[0].class()
		e := entity(p.mediaLink, fmt.Sprintf("https://x.com/%s/status/%s/%s/1", p.owner.Username, p.id, kind), "pic.x.com/"+p.mediaLink[len("https://t.co/"):])
		e["media_key"] = p.media[0].key()
		urls = append(urls, e)
	}
	out := map[string]any{"id": p.id, "text": b.String()}
	for _, field := range fields {
		switch field {
		case "created_at":
			out["created_at"] = timestamp(p.date)
		case "author_id":
			out["author_id"] = p.owner.ID
		case "made_with_ai":
			out["made_with_ai"] = p.madeByAI
		case "edit_history_tweet_ids":
			out["edit_history_tweet_ids"] = append(slices.Clone(p.history), p.id)
		case "entities":
			if len(urls) > 0 {
				out["entities"] = map[string]any{"urls": urls}
			}
		case "attachments":
			if len(p.media) > 0 {
				out["attachments"] = map[string]any{"media_keys": p.mediaKeys()}
			}
		case "referenced_tweets":
			if p.replyTo != "" {
				out["referenced_tweets"] = []any{map[string]any{"type": "replied_to", "id": p.replyTo}}
			}
		}
	}
	return out
}

func (p *post) mediaKeys() []string {
	keys := make([]string, 0, len(p.media))
	for _, m := range p.media {
		keys = append(keys, m.key())
	}
	return keys
}

// asked are the optional fields that a call names.
func (c *call) asked() ([]string, *problem) {
	given := c.query.Get("tweet.fields")
	if given == "" {
		return nil, nil
	}
	fields := strings.Split(given, ",")
	for _, field := range fields {
		if !slices.Contains(postFields, field) {
			return nil, invalid(fmt.Sprintf("The `tweet.fields` query parameter value [%s] is not one of [%s]", field, strings.Join(postFields, ",")), "tweet.fields", fields...)
		}
	}
	return fields, nil
}

// get answers what is not there with 200 and an error, as X does.
func (s *Server) get(c *call) (outcome, *problem) {
	fields, refused := c.asked()
	if refused != nil {
		return outcome{}, refused
	}
	p := s.posts[c.id]
	if p == nil || p.removed {
		return outcome{body: map[string]any{"errors": []any{map[string]any{
			"value": c.id, "detail": "Could not find tweet with id: [" + c.id + "].", "title": "Not Found Error", "resource_type": "tweet",
			"parameter": "id", "resource_id": c.id, "type": problemTypes + "resource-not-found",
		}}}}, nil
	}
	s.chargeReads(c, p.owner, 1)
	return outcome{body: map[string]any{"data": p.show(fields)}}, nil
}

func (s *Server) chargeReads(c *call, of *user, posts int) {
	price := int64(PriceRead)
	if of == c.user && c.app.OwnerID == c.user.ID {
		price = PriceOwnRead
	}
	for range posts {
		s.charge(c, "post read", price)
	}
}

func (s *Server) remove(c *call) (outcome, *problem) {
	p := s.posts[c.id]
	switch {
	case p == nil, p.removed:
		return outcome{}, named("not-found")
	case p.owner != c.user:
		return outcome{}, named("not-the-author")
	}
	p.removed = true
	c.user.posts = slices.DeleteFunc(c.user.posts, func(o *post) bool { return o == p })
	c.log.Removed = []string{p.id}
	s.charge(c, "deletion", PriceDelete)
	return outcome{body: map[string]any{"data": map[string]any{"deleted": true}}}, nil
}

// timelineQuery is what GET /2/users/{id}/tweets asks for.
type timelineQuery struct {
	size         int
	after, until time.Time
	since, below int64 // ids
	skip         int
	replies      bool
	fields       []string
}

func (c *call) timelineQuery() (q timelineQuery, refused *problem) {
	if q.fields, refused = c.asked(); refused != nil {
		return q, refused
	}
	q.size, q.replies = 10, true
	for _, name := range timelineParams {
		given := c.query.Get(name)
		if given == "" {
			continue
		}
		var err error
		switch name {
		case "max_results":
			if q.size, err = strconv.Atoi(given); err != nil || q.size < 5 || q.size > 100 {
				return q, invalid("The `max_results` query parameter value ["+given+"] is not between 5 and 100", name, given)
			}
		case "start_time":
			q.after, err = time.Parse(time.RFC3339, given)
		case "end_time":
			q.until, err = time.Parse(time.RFC3339, given)
		case "since_id":
			q.since, err = strconv.ParseInt(given, 10, 64)
		case "until_id":
			q.below, err = strconv.ParseInt(given, 10, 64)
		case "pagination_token":
			q.skip, err = strconv.Atoi(strings.TrimPrefix(given, "page"))
		case "exclude":
			q.replies = !slices.Contains(strings.Split(given, ","), "replies")
		}
		if err != nil {
			return q, invalid("The `"+name+"` query parameter value ["+given+"] is not valid", name, given)
		}
	}
	return q, nil
}

func (q timelineQuery) wants(p *post) bool {
	id, _ := strconv.ParseInt(p.id, 10, 64) // made by newID
	return !p.date.Before(q.after) && (q.until.IsZero() || p.date.Before(q.until)) &&
		id > q.since && (q.below == 0 || id < q.below) && (q.replies || p.replyTo == "")
}

// timeline lists a user's posts, newest first; the newest ones are not in it yet.
func (s *Server) timeline(c *call) (outcome, *problem) {
	q, refused := c.timelineQuery()
	if refused != nil {
		return outcome{}, refused
	}
	of := s.users[c.id]
	if of == nil {
		return outcome{}, &problem{status: http.StatusNotFound, title: "Not Found Error", detail: "Could not find user with id: [" + c.id + "].", kind: "resource-not-found"}
	}
	settled := time.Now().Add(-s.core.Pace.Of(s.settle))
	var found []*post
	for _, p := range slices.Backward(of.posts) {
		if !p.date.After(settled) && q.wants(p) {
			found = append(found, p)
		}
	}
	meta := map[string]any{"result_count": 0}
	body := map[string]any{"meta": meta}
	if q.skip < 0 || q.skip >= len(found) {
		return outcome{body: body}, nil
	}
	page := found[q.skip:min(len(found), q.skip+q.size)]
	data := make([]any, 0, len(page))
	for _, p := range page {
		data = append(data, p.show(q.fields))
	}
	body["data"] = data
	meta["result_count"], meta["newest_id"], meta["oldest_id"] = len(page), page[0].id, page[len(page)-1].id
	if q.skip+q.size < len(found) {
		meta["next_token"] = "page" + strconv.Itoa(q.skip+q.size)
	}
	s.chargeReads(c, of, len(page))
	return outcome{body: body}, nil
}
