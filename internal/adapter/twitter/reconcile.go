package twitter

import (
	"context"
	"html"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"autopost"
	"autopost/internal/adapter"
)

const (
	// lookBack is how much before a call began its post may seem to be made: clocks differ.
	lookBack = time.Minute
	// pageSize and maxPages bound a look: what an account posts in far more than a call lasts.
	pageSize = 100
	maxPages = 5
)

// SettleTime implements autopost.Reconciler.
func (*Adapter) SettleTime() time.Duration { return settleTime }

// Reconcile implements autopost.Reconciler: it looks for the post in the account's
// timeline since its last call, by text, media and what it answers.
func (a *Adapter) Reconcile(ctx context.Context, call autopost.Call) autopost.Verdict {
	s, failure := a.sender(call)
	if failure != nil {
		return autopost.Verdict{Error: failure}
	}
	step, answers, ok := adapter.Missing(call.Delivery)
	if !ok {
		return autopost.Verdict{Error: invalid("the delivery has no step that is not acknowledged")}
	}
	found, failure := s.look(ctx, step, answers)
	verdict := autopost.Verdict{Absent: found.id == ""}
	switch {
	case failure != nil:
		verdict = autopost.Verdict{Error: failure}
	case found.id != "":
		verdict = adapter.Found(ctx, call, []string{found.id})
	}
	verdict.Used = s.used
	return verdict
}

// sighting is a post that was found; an empty id is none.
type sighting struct {
	id string
	at time.Time
}

// post is one of a timeline.
type post struct {
	ID          string    `json:"id"`
	Text        string    `json:"text"`
	CreatedAt   time.Time `json:"created_at"`
	Attachments struct {
		MediaKeys []string `json:"media_keys"`
	} `json:"attachments"`
	Entities struct {
		URLs []struct {
			URL      string `json:"url"`
			Expanded string `json:"expanded_url"`
			MediaKey string `json:"media_key"`
		} `json:"urls"`
	} `json:"entities"`
	Referenced []struct {
		Type string `json:"type"`
		ID   string `json:"id"`
	} `json:"referenced_tweets"`
}

// look finds the oldest post of the account that is this step's, made since the last
// call. A failure is that it cannot be told.
func (s *sender) look(ctx context.Context, step autopost.Step, answers string) (sighting, *autopost.Error) {
	if s.call.Delivery.LastCallAt == nil {
		return sighting{}, invalid("the delivery does not say when it was last called for")
	}
	wanted, failure := s.wanted(ctx, step, answers)
	if failure != nil {
		return sighting{}, failure
	}
	user, failure := s.user(ctx)
	if failure != nil {
		return sighting{}, failure
	}
	var found sighting
	query := url.Values{
		"max_results": {strconv.Itoa(pageSize)}, "start_time": {s.call.Delivery.LastCallAt.Add(-lookBack).UTC().Format(time.RFC3339)},
		"tweet.fields": {"created_at,entities,attachments,referenced_tweets"},
	}
	for range maxPages {
		var page struct {
			Data []post `json:"data"`
			Meta struct {
				NextToken string `json:"next_token"`
			} `json:"meta"`
		}
		if failure := s.get(ctx, "2/users/"+user+"/tweets", query, &page); failure != nil {
			return sighting{}, failure
		}
		s.used = s.used.Add(useOwnedRead, len(page.Data))
		for _, p := range page.Data { // newest first
			if wanted.is(p) {
				found = sighting{p.ID, p.CreatedAt}
			}
		}
		if page.Meta.NextToken == "" {
			return found, nil
		}
		query.Set("pagination_token", page.Meta.NextToken)
	}
	if found.id != "" {
		return found, nil
	}
	return sighting{}, invalid("the account has posted more than %d times since the call", maxPages*pageSize)
}

// user is the id of the account.
func (s *sender) user(ctx context.Context) (string, *autopost.Error) {
	if _, err := strconv.ParseUint(s.call.Delivery.TargetID, 10, 64); err == nil {
		return s.call.Delivery.TargetID, nil
	}
	is, failure := s.me(ctx)
	return is.ID, failure
}

// wanted is what a step's post must look like.
type wanted struct {
	text    string
	answers string
	media   []string // ids; one that is not known is empty
	others  []string // ids of posts that are known to be something else
}

func (s *sender) wanted(ctx context.Context, step autopost.Step, answers string) (wanted, *autopost.Error) {
	w := wanted{text: comparable(s.text(step)), answers: answers, others: adapter.Others(s.call.Delivery)}
	for _, index := range step.Items {
		medium, failure := adapter.Item(s.call.Delivery, index)
		if failure != nil {
			return wanted{}, failure
		}
		it, failure := s.find(ctx, medium)
		if failure != nil {
			return wanted{}, failure
		}
		w.media = append(w.media, it.id)
	}
	if w.text == "" && slices.Contains(w.media, "") {
		return wanted{}, invalid("a post without text whose media X no longer knows cannot be told from others")
	}
	return w, nil
}

func (w wanted) is(p post) bool {
	if slices.Contains(w.others, p.ID) || len(p.Attachments.MediaKeys) != len(w.media) {
		return false
	}
	for i, key := range p.Attachments.MediaKeys {
		// A key is the media's class and its id.
		if _, id, _ := strings.Cut(key, "_"); w.media[i] != "" && w.media[i] != id {
			return false
		}
	}
	answers := ""
	for _, other := range p.Referenced {
		if other.Type == "replied_to" {
			answers = other.ID
		}
	}
	return answers == w.answers && p.said() == w.text
}

// said is the text that the post was made with, as far as it can be told: its short
// links give back what they stand for, and those to its media go.
func (p post) said() string {
	text := p.Text
	for _, link := range p.Entities.URLs {
		long := html.EscapeString(link.Expanded)
		if link.MediaKey != "" {
			long = ""
		}
		text = strings.Replace(text, link.URL, long, 1)
	}
	return comparable(html.UnescapeString(text))
}

// comparable is a text in the form in which two are the same: without the scheme that
// X adds to a bare link.
func comparable(text string) string {
	return strings.ReplaceAll(adapter.Squeeze(text), "http://", "")
}
