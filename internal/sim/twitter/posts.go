package twitter

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	"autopost/internal/sim"
)

var timelineParams = []string{
	"max_results", "since_id", "until_id", "start_time", "end_time", "exclude", "pagination_token", newFields, oldFields, expansions, "media.fields", "user.fields", "poll.fields", "place.fields",
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

// get answers a missing post with 200 and an error, as X does.
func (s *Server) get(c *call) (outcome, *problem) {
	fields, refused := s.asked(c)
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

// timelineQuery are the parameters of GET /2/users/{id}/tweets.
type timelineQuery struct {
	size         int
	after, until time.Time
	since, below int64 // ids
	skip         int
	replies      bool
	fields       map[string]bool
}

func (s *Server) timelineQuery(c *call) (q timelineQuery, refused *problem) {
	if q.fields, refused = s.asked(c); refused != nil {
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
	id, _ := strconv.ParseInt(p.id, 10, 64) // ids of newID are numbers
	return !p.date.Before(q.after) && (q.until.IsZero() || p.date.Before(q.until)) &&
		id > q.since && (q.below == 0 || id < q.below) && (q.replies || p.replyTo == "")
}

// timeline lists the posts of a user, newest first, without those that have not settled.
func (s *Server) timeline(c *call) (outcome, *problem) {
	q, refused := s.timelineQuery(c)
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
	if q.fields["referenced_posts"] {
		body["includes"] = map[string]any{"posts": s.parents(page)}
	}
	meta["result_count"], meta["newest_id"], meta["oldest_id"] = len(page), page[0].id, page[len(page)-1].id
	if q.skip+q.size < len(found) {
		meta["next_token"] = "page" + strconv.Itoa(q.skip+q.size)
	}
	s.chargeReads(c, of, len(page))
	return outcome{body: body}, nil
}

// parents are the parents of posts, for an expansion.
func (s *Server) parents(of []*post) []any {
	var out []any
	for _, p := range of {
		if parent := s.posts[p.replyTo]; parent != nil && !parent.removed {
			out = append(out, parent.show(nil))
		}
	}
	return out
}
