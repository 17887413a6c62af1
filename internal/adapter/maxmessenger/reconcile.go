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
	// settleTime is how long a chat may not show a post that it has.
	settleTime = 10 * time.Second
	// lookBack is how much before a call began its post may seem to be made: clocks differ.
	lookBack = time.Minute
	// pageSize is all that can be looked at: what the parameters of the next page mean is not known.
	pageSize = 100
)

// SettleTime implements autopost.Reconciler.
func (*Adapter) SettleTime() time.Duration { return settleTime }

// Reconcile implements autopost.Reconciler: it reads the chat's newest messages back,
// which a channel's administrator may who has the right read_all_messages.
func (a *Adapter) Reconcile(ctx context.Context, call autopost.Call) autopost.Verdict {
	s := &sender{adapter: a, call: call, hide: adapter.Hide(call.Secret)}
	if failure := s.prepare(); failure != nil {
		return autopost.Verdict{Error: failure}
	}
	step, _, ok := adapter.Missing(call.Delivery)
	if !ok || call.Delivery.LastCallAt == nil {
		return autopost.Verdict{Error: untold("the delivery has no step in doubt, or does not say since when")}
	}
	mid, failure := s.look(ctx, step)
	switch {
	case failure != nil:
		return autopost.Verdict{Error: failure}
	case mid == "":
		return autopost.Verdict{Absent: true}
	}
	return adapter.Found(ctx, call, []string{mid})
}

func untold(format string, values ...any) *autopost.Error {
	return adapter.Refusal(autopost.Transient, autopost.ScopeDelivery, "max_not_told", fmt.Sprintf(format, values...))
}

// listed is a message as a chat shows it.
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

// look finds the oldest message of the chat that is this step's, made since the call in
// doubt; "" is none. A failure is that it cannot be told.
func (s *sender) look(ctx context.Context, step autopost.Step) (string, *autopost.Error) {
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
	var page struct {
		Messages []listed `json:"messages"`
	}
	query := url.Values{"chat_id": {s.chat}, "count": {strconv.Itoa(pageSize)}}
	if failure := s.ask(ctx, &page, query, "messages"); failure != nil {
		return "", failure
	}
	found, unclear, whole := "", "", len(page.Messages) < pageSize
	others, since := adapter.Others(s.call.Delivery), s.call.Delivery.LastCallAt.Add(-lookBack)
	for _, m := range page.Messages { // newest first
		if time.UnixMilli(m.Timestamp).Before(since) || s.before(m) {
			whole = true
			break
		}
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
		return "", untold("message %s may be the post, or another's", unclear)
	case !whole:
		return "", untold("the chat has had over %d messages since the call", pageSize)
	}
	return "", nil
}

// before reports whether a message stood when the call in doubt began, and all that are older with it.
func (s *sender) before(m listed) bool {
	known := s.call.Delivery.KnownPosts
	return known != nil && slices.Contains(known.Before, m.Body.MID)
}

// wanted is what the step's message looks like.
func (s *sender) wanted(ctx context.Context, step autopost.Step) (adapter.Look, *autopost.Error) {
	var want adapter.Look
	body := s.message(step)
	if body.Text != nil {
		want.Text = *body.Text
	}
	if body.Format != "" {
		want.Text = adapter.Plain(want.Text)
	}
	want.Text = adapter.Squeeze(want.Text)
	for _, index := range step.Items {
		medium, failure := adapter.Item(s.call.Delivery, index)
		if failure != nil {
			return adapter.Look{}, failure
		}
		it, failure := s.find(ctx, medium)
		if failure != nil {
			return adapter.Look{}, failure
		}
		want.Media = append(want.Media, adapter.Shown{Kind: it.kind, ID: it.token})
	}
	return want, nil
}

// shown leaves out what a message bears beside text and media: buttons, a link's preview.
func (m listed) shown() adapter.Look {
	look := adapter.Look{Text: adapter.Squeeze(m.Body.Text)}
	for _, a := range m.Body.Attachments {
		switch a.Type {
		case "image", "video", "audio", "file":
			look.Media = append(look.Media, adapter.Shown{Kind: a.Type, ID: a.Payload.Token})
		}
	}
	return look
}

var _ autopost.Reconciler = (*Adapter)(nil)
