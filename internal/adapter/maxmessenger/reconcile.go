package maxmessenger

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	"autopost"
	"autopost/internal/adapter"
)

const (
	// settleTime is how long a chat may hide a new message.
	settleTime = 10 * time.Second
	// clockSkew is how long before a call its post may seem to be made, because clocks differ.
	clockSkew = time.Minute
	// pageSize is the number of messages per request, maxPages that of requests.
	pageSize = 100
	maxPages = 5
)

// SettleTime implements autopost.Reconciler.
func (*Adapter) SettleTime() time.Duration { return settleTime }

// Reconcile implements autopost.Reconciler. It reads the newest messages of the chat. In a channel the
// bot needs the right read_all_messages.
func (a *Adapter) Reconcile(ctx context.Context, call autopost.Call) autopost.Verdict {
	s := &sender{adapter: a, call: call, hide: adapter.Hide(call.Secret)}
	if failure := s.prepare(); failure != nil {
		return autopost.Verdict{Error: failure}
	}
	step, _, ok := adapter.Missing(call.Delivery)
	if !ok || call.Delivery.LastCallAt == nil {
		return autopost.Verdict{Error: undecided("the delivery has no step with an unknown outcome, or no time of its last call")}
	}
	mid, failure := s.search(ctx, step)
	switch {
	case failure != nil:
		return autopost.Verdict{Error: failure}
	case mid == "":
		return autopost.Verdict{Absent: true}
	}
	return adapter.Found(ctx, call, []string{mid})
}

// undecided is the error if the chat does not show whether it has the post.
func undecided(format string, values ...any) *autopost.Error {
	return adapter.Refusal(autopost.Transient, autopost.ScopeDelivery, "max_undecided", fmt.Sprintf(format, values...))
}

// listed is a message of GET /messages.
type listed struct {
	Timestamp int64 `json:"timestamp"` // Unix time in milliseconds
	Recipient struct {
		ChatType string `json:"chat_type"`
	} `json:"recipient"`
	// Sender may be missing in a channel.
	Sender *struct {
		UserID int64 `json:"user_id"`
	} `json:"sender"`
	Body struct {
		MID         string `json:"mid"`
		Text        string `json:"text"`
		Attachments []struct {
			Type    string       `json:"type"`
			Payload tokenPayload `json:"payload"`
		} `json:"attachments"`
	} `json:"body"`
}

// search returns the id of the step's message, the oldest one since the call that matches; "" if the
// chat has none.
func (s *sender) search(ctx context.Context, step autopost.Step) (string, *autopost.Error) {
	want, failure := s.wanted(ctx, step)
	if failure != nil {
		return "", failure
	}
	var me struct {
		UserID int64 `json:"user_id"`
	}
	if failure := s.ask(ctx, &me, nil, "me"); failure != nil {
		return "", failure
	}
	messages, whole, failure := s.since(ctx, s.call.Delivery.LastCallAt.Add(-clockSkew))
	if failure != nil {
		return "", failure
	}
	found, unclear := "", ""
	others := adapter.Others(s.call.Delivery)
	for _, m := range messages {
		if slices.Contains(others, m.Body.MID) || (m.Sender != nil && m.Sender.UserID != me.UserID) {
			continue
		}
		switch likeness := want.Compare(m.shown(), s.call.Delivery); {
		case likeness == adapter.Different:
		case likeness == adapter.Unclear, m.Sender == nil && m.Recipient.ChatType != "channel":
			unclear = m.Body.MID
		default:
			found = m.Body.MID
		}
	}
	switch {
	case found != "":
		return found, nil
	case unclear != "":
		return "", undecided("message %s may be the post, or another's", unclear)
	case !whole:
		return "", undecided("the chat has more than %d messages since the call", len(messages))
	}
	return "", nil
}

// since returns the messages of the chat since a time, newest first. The result is not whole if there
// are more than maxPages pages of them.
func (s *sender) since(ctx context.Context, since time.Time) (messages []listed, whole bool, failure *autopost.Error) {
	seen := map[string]bool{}
	query := url.Values{"chat_id": {s.chat}, "count": {strconv.Itoa(pageSize)}}
	for range maxPages {
		var page struct {
			Messages []listed `json:"messages"`
		}
		if failure := s.ask(ctx, &page, query, "messages"); failure != nil {
			return nil, false, failure
		}
		known := len(seen)
		for _, m := range page.Messages {
			if time.UnixMilli(m.Timestamp).Before(since) || s.before(m) {
				return messages, true, nil
			}
			if !seen[m.Body.MID] {
				messages = append(messages, m)
			}
			seen[m.Body.MID] = true
			// The next page begins with this very millisecond, which other messages may have.
			query.Set("before", strconv.FormatInt(m.Timestamp+1, 10))
		}
		if len(page.Messages) < pageSize {
			return messages, true, nil
		}
		if len(seen) == known {
			break // the server ignores "before"
		}
	}
	return messages, false, nil
}

// before reports whether a message is known from before the call.
func (s *sender) before(m listed) bool {
	known := s.call.Delivery.KnownPosts
	return known != nil && slices.Contains(known.Before, m.Body.MID)
}

// wanted returns the look of the step's message.
func (s *sender) wanted(ctx context.Context, step autopost.Step) (adapter.PostContent, *autopost.Error) {
	var want adapter.PostContent
	body := s.message(step)
	if body.Text != nil {
		want.Text = *body.Text
	}
	if body.Format != "" {
		want.Text = adapter.Plain(want.Text)
	}
	want.Text = adapter.NormalizeText(want.Text)
	for _, index := range step.Items {
		medium, failure := adapter.Item(s.call.Delivery, index)
		if failure != nil {
			return adapter.PostContent{}, failure
		}
		it, failure := s.find(ctx, medium)
		if failure != nil {
			return adapter.PostContent{}, failure
		}
		want.Media = append(want.Media, adapter.PostMedium{Kind: it.kind, ID: it.token})
	}
	return want, nil
}

// shown returns the look of a message: its text and media, without buttons and link previews.
func (m listed) shown() adapter.PostContent {
	look := adapter.PostContent{Text: adapter.NormalizeText(m.Body.Text)}
	for _, a := range m.Body.Attachments {
		switch a.Type {
		case "image", "video", "audio", "file":
			look.Media = append(look.Media, adapter.PostMedium{Kind: a.Type, ID: a.Payload.Token})
		}
	}
	return look
}

var _ autopost.Reconciler = (*Adapter)(nil)
