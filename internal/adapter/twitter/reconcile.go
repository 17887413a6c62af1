package twitter

import (
	"context"
	"html"
	"slices"
	"strconv"
	"strings"
	"time"

	"autopost"
	"autopost/internal/adapter"
)

const (
	// clockTolerance is how much earlier than the start of a call its post may be dated.
	clockTolerance = time.Minute
	// pageSize and maxPages bound a search. An account posts far less during one call.
	pageSize = 100
	maxPages = 5
)

// SettleTime implements autopost.Reconciler.
func (*Adapter) SettleTime() time.Duration { return settleTime }

// Reconcile implements autopost.Reconciler. It searches the account's timeline since the last call for
// a post with the text, the media and the parent of the first missing step.
func (a *Adapter) Reconcile(ctx context.Context, call autopost.Call) autopost.Verdict {
	s, failure := a.sender(call)
	if failure != nil {
		return autopost.Verdict{Error: failure}
	}
	step, answers, ok := adapter.Missing(call.Delivery)
	if !ok {
		return autopost.Verdict{Error: invalid("the delivery has no step that is not acknowledged")}
	}
	found, failure := s.findPost(ctx, step, answers)
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

// match is a post that was found; the zero value means that there was none.
type match struct {
	id string
	at time.Time
}

// findPost finds the oldest post since the last call that matches the step. An error means that the
// timeline does not answer the question; it never means that the post is absent.
func (s *sender) findPost(ctx context.Context, step autopost.Step, answers string) (match, *autopost.Error) {
	if s.call.Delivery.LastCallAt == nil {
		return match{}, invalid("the delivery has no time of its last call")
	}
	wanted, failure := s.wanted(ctx, step, answers)
	if failure != nil {
		return match{}, failure
	}
	user, failure := s.user(ctx)
	if failure != nil {
		return match{}, failure
	}
	first := s.adapter.vocabulary()
	found, failure := s.search(ctx, user, wanted, first)
	if failure == nil || failure.Code != codeUnclear {
		return found, failure
	}
	found, failure = s.search(ctx, user, wanted, !first)
	if failure == nil {
		s.adapter.remember(!first)
	}
	return found, failure
}

// search reads the timeline in one vocabulary.
func (s *sender) search(ctx context.Context, user string, wanted wanted, words vocabulary) (match, *autopost.Error) {
	var found match
	query := words.query()
	query.Set("max_results", strconv.Itoa(pageSize))
	query.Set("start_time", wanted.since.UTC().Format(time.RFC3339))
	for range maxPages {
		page, failure := s.timeline(ctx, user, query)
		if failure != nil {
			return match{}, failure
		}
		s.used = s.used.Add(useOwnedRead, len(page.Data))
		for _, p := range page.Data { // newest first
			if p.CreatedAt.IsZero() {
				return match{}, unclear("X left out the time of post " + p.ID)
			}
			if wanted.is(p) {
				found = match{p.ID, p.CreatedAt}
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
	return match{}, invalid("the account has posted more than %d times since the call", maxPages*pageSize)
}

// user is the id of the account.
func (s *sender) user(ctx context.Context) (string, *autopost.Error) {
	if _, err := strconv.ParseUint(s.call.Delivery.TargetID, 10, 64); err == nil {
		return s.call.Delivery.TargetID, nil
	}
	is, failure := s.me(ctx)
	return is.ID, failure
}

// wanted describes the post of a step.
type wanted struct {
	since   time.Time // no post of the step is older
	text    string
	answers string   // id of the parent; "" for a post that is not a reply
	thread  string   // id of the delivery's first post; "" without one
	media   []string // ids; "" where the id is not known
	others  []string // ids of posts of other deliveries and steps
}

func (s *sender) wanted(ctx context.Context, step autopost.Step, answers string) (wanted, *autopost.Error) {
	w := wanted{
		since: s.call.Delivery.LastCallAt.Add(-clockTolerance), text: comparable(s.text(step)), answers: answers,
		others: adapter.Others(s.call.Delivery),
	}
	if ids := s.call.Delivery.MessageIDs(); len(ids) > 0 {
		w.thread = ids[0]
	}
	for _, index := range step.Items {
		medium, failure := adapter.Item(s.call.Delivery, index)
		if failure != nil {
			return wanted{}, failure
		}
		it, failure := s.findMedium(ctx, medium)
		if failure != nil {
			return wanted{}, failure
		}
		w.media = append(w.media, it.id)
	}
	if w.text == "" && slices.Contains(w.media, "") {
		return wanted{}, invalid("a post without text cannot be identified after its media ids expired")
	}
	return w, nil
}

// is reports whether a post of the timeline is the wanted one.
func (w wanted) is(p post) bool {
	if slices.Contains(w.others, p.ID) || p.CreatedAt.Before(w.since.Truncate(time.Second)) || len(p.Attachments.MediaKeys) != len(w.media) {
		return false
	}
	for i, key := range p.Attachments.MediaKeys {
		// A key is the class of the medium and its id.
		if _, id, _ := strings.Cut(key, "_"); w.media[i] != "" && w.media[i] != id {
			return false
		}
	}
	return w.sameParent(p) && slices.Contains(p.texts(), w.text)
}

// sameParent compares the parents. If X names no parent, the thread decides.
func (w wanted) sameParent(p post) bool {
	if parent := p.parent(); parent != "" {
		return parent == w.answers
	}
	if p.ConversationID == "" || p.ConversationID == p.ID {
		return w.answers == ""
	}
	return w.answers != "" && p.ConversationID == w.thread
}

// texts are the forms of the text that the post may have been made with: short links are replaced by
// their addresses, and links to the post's own media are removed.
func (p post) texts() []string {
	text, links := p.Text, p.Entities.URLs
	if note := p.note(); note != nil {
		// X cuts the text of a long post; the note has all of it. Media links may be in either.
		text, links = note.Text, slices.Concat(note.Entities.URLs, p.Entities.URLs)
	}
	var forms []string
	for _, expand := range []func(shortLink) string{
		func(l shortLink) string { return l.Expanded },
		func(l shortLink) string { return l.Unwound },
	} {
		form := text
		for _, link := range links {
			long := html.EscapeString(expand(link))
			if link.MediaKey != "" {
				long = ""
			} else if long == "" {
				continue
			}
			form = strings.Replace(form, link.URL, long, 1)
		}
		forms = append(forms, comparable(html.UnescapeString(form)))
	}
	return forms
}

// comparable is a text in a form in which two equal texts are equal: without the scheme that X adds to
// a link that has none.
func comparable(text string) string {
	return strings.ReplaceAll(adapter.NormalizeText(text), "http://", "")
}
