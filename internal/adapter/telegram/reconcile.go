package telegram

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"autopost"
	"autopost/internal/adapter"
)

const (
	// clockSkew is how long before a call its post may seem to be made, because clocks differ.
	clockSkew = time.Minute
	// maxProbes limits the messages that Reconcile reads. The chat ends after maxMissing ids in a row
	// without a message.
	maxProbes  = 20
	maxMissing = 3
)

// pauses are the waits between the calls of Reconcile.
type pauses struct {
	// afterCopy follows a forwarded message: Telegram allows one message a second in a chat.
	afterCopy time.Duration
	// afterMiss follows an id without a message.
	afterMiss time.Duration
}

var defaultPauses = pauses{afterCopy: time.Second, afterMiss: 50 * time.Millisecond}

// SettleTime implements autopost.Reconciler. A message has its id as soon as it exists.
func (*Adapter) SettleTime() time.Duration { return 0 }

// Reconcile implements autopost.Reconciler. It forwards the messages after the newest known one to the
// service chat, compares each copy with the post and deletes it, for a bot cannot read a chat. It asks
// nothing without a service chat. It works in channels and supergroups only.
func (a *Adapter) Reconcile(ctx context.Context, call autopost.Call) autopost.Verdict {
	s := &sender{adapter: a, call: call, hide: adapter.Hide(call.Secret)}
	if failure := s.prepare(); failure != nil {
		return autopost.Verdict{Error: failure}
	}
	if s.settings.ServiceChatID == 0 {
		return autopost.Verdict{}
	}
	p, failure := s.probe(ctx)
	if failure != nil {
		return autopost.Verdict{Error: failure}
	}
	ids, failure := p.run(ctx)
	switch {
	case failure != nil:
		return autopost.Verdict{Error: failure}
	case ids == nil:
		return autopost.Verdict{Absent: true}
	}
	return adapter.Found(ctx, call, ids)
}

// undecided is the error if the chat does not show whether it has the post.
func undecided(format string, values ...any) *autopost.Error {
	return adapter.Refusal(autopost.Transient, autopost.ScopeDelivery, "tg_undecided", fmt.Sprintf(format, values...))
}

// probe searches a chat for the messages of one step.
type probe struct {
	*sender
	from chat
	want adapter.PostContent
	// size is the number of messages of the step. Those of an album have consecutive ids.
	size int
	// after is the highest known id from before the call.
	after int64
	since time.Time
	// copied says that the last call forwarded a message.
	copied bool
	// pause is the wait before the next call.
	pause time.Duration
}

// chat is the answer of getChat.
type chat struct {
	ID        int64  `json:"id"`
	Type      string `json:"type"`
	Protected bool   `json:"has_protected_content"`
}

// probe prepares the search. The error says that the chat cannot be searched.
func (s *sender) probe(ctx context.Context) (*probe, *autopost.Error) {
	d := s.call.Delivery
	step, _, ok := adapter.Missing(d)
	if !ok || d.LastCallAt == nil {
		return nil, undecided("the delivery has no step with an unknown outcome, or no time of its last call")
	}
	p := &probe{sender: s, size: max(1, len(step.Items)), since: d.LastCallAt.Add(-clockSkew)}
	if p.after = newest(d); p.after == 0 {
		return nil, undecided("no message of the chat is known from before the call")
	}
	c := checker{adapter: s.adapter, secret: s.call.Secret, hide: s.hide}
	if failure := c.ask(ctx, "getChat", url.Values{"chat_id": {s.chat}}, &p.from); failure != nil {
		return nil, failure
	}
	switch {
	case p.from.ID == s.settings.ServiceChatID:
		return nil, undecided("the service chat is the channel itself")
	case p.from.Type != "channel" && p.from.Type != "supergroup":
		return nil, undecided("a %s does not number its own messages", p.from.Type)
	case p.from.Protected || s.settings.ProtectContent:
		return nil, undecided("protected messages cannot be forwarded")
	}
	var failure *autopost.Error
	p.want, failure = s.wanted(ctx, step)
	return p, failure
}

// newest is the highest known id that is older than the missing step; 0 if none is known.
func newest(d autopost.Delivery) int64 {
	var highest int64
	older := slices.Clone(d.RenderMeta.Progress.ProviderMessageIDs)
	for _, ids := range d.RenderMeta.Progress.Steps {
		older = append(older, ids...)
	}
	if d.KnownPosts != nil {
		older = append(older, d.KnownPosts.Before...)
	}
	for _, id := range older {
		if n, err := strconv.ParseInt(id, 10, 64); err == nil {
			highest = max(highest, n)
		}
	}
	return highest
}

// wanted returns the look of the step's messages together.
func (s *sender) wanted(ctx context.Context, step autopost.Step) (adapter.PostContent, *autopost.Error) {
	var want adapter.PostContent
	texts := []string{s.call.Delivery.StepText(step)}
	if len(step.Items) > 0 {
		items, failure := s.items(ctx, step)
		if failure != nil {
			return adapter.PostContent{}, failure
		}
		texts = nil
		for _, it := range items {
			texts = append(texts, it.caption)
			want.Media = append(want.Media, adapter.PostMedium{Kind: it.kind, ID: it.fileID})
		}
	}
	for i, text := range texts {
		if s.call.Delivery.RenderMeta.ParseMode != "" {
			texts[i] = adapter.Plain(text)
		}
	}
	want.Text = adapter.NormalizeText(strings.Join(texts, "\n"))
	return want, nil
}

// run returns the ids of the step's messages; nil if the chat ends without them.
func (p *probe) run(ctx context.Context) ([]string, *autopost.Error) {
	others := adapter.Others(p.call.Delivery)
	var unit []message // the last messages with consecutive ids that no other delivery is known to have made
	unclear, missing := int64(0), 0
	for id, probes := p.after+1, 0; probes < maxProbes; id++ {
		if slices.Contains(others, strconv.FormatInt(id, 10)) {
			unit, missing = nil, 0
			continue
		}
		probes++
		m, exists, failure := p.forwarded(ctx, id)
		switch {
		case failure != nil:
			return nil, failure
		case m == nil:
			unit = nil
		default:
			unit = append(unit, *m)
			unit = unit[max(0, len(unit)-p.size):]
		}
		missing++
		if exists {
			missing = 0
		}
		switch p.compare(unit) {
		case adapter.Same:
			return p.ids(id), nil
		case adapter.Unclear:
			unclear = id
		case adapter.Different:
		}
		if missing < maxMissing {
			continue
		}
		if unclear != 0 {
			return nil, undecided("message %d may be the post, or another's", unclear)
		}
		return nil, nil
	}
	return nil, undecided("the chat has %d messages or more of unknown origin", maxProbes)
}

// ids returns the ids of the step's messages, of which last is the last.
func (p *probe) ids(last int64) []string {
	ids := make([]string, p.size)
	for i := range ids {
		ids[i] = strconv.FormatInt(last-int64(p.size-1-i), 10)
	}
	return ids
}

// compare compares consecutive messages with the step.
func (p *probe) compare(unit []message) adapter.Match {
	if len(unit) < p.size {
		return adapter.Different
	}
	var look adapter.PostContent
	var texts []string
	likeness := adapter.Same
	for _, m := range unit {
		texts = append(texts, m.Text+m.Caption)
		if kind := m.kind(); kind != "" {
			look.Media = append(look.Media, adapter.PostMedium{Kind: kind, ID: m.fileID(kind)})
		}
		likeness = min(likeness, p.author(m.ForwardOrigin))
	}
	look.Text = adapter.NormalizeText(strings.Join(texts, "\n"))
	return min(likeness, p.want.Compare(look, p.call.Delivery))
}

// author compares the author and the time of a message with the call. A token begins with the bot's id.
func (p *probe) author(o origin) adapter.Match {
	bot, _, _ := strings.Cut(p.call.Secret.Reveal(), ":")
	switch {
	case time.Unix(o.Date, 0).Before(p.since.Truncate(time.Second)):
		return adapter.Different
	case p.from.Type == "channel" && o.Type == "channel" && o.Chat.ID == p.from.ID,
		o.Type == "user" && strconv.FormatInt(o.SenderUser.ID, 10) == bot:
		return adapter.Same
	case o.Type == "chat" && o.SenderChat.ID == p.from.ID: // any anonymous administrator
		return adapter.Unclear
	}
	return adapter.Different
}

// forwarded reads one message by a copy, which it deletes. The message is nil if it cannot be the
// post; exists is false if the id has no message.
func (p *probe) forwarded(ctx context.Context, id int64) (m *message, exists bool, failure *autopost.Error) {
	if failure := p.wait(ctx); failure != nil {
		return nil, false, failure
	}
	p.copied, p.pause = false, p.adapter.pauses.afterMiss
	service := param{"chat_id", p.settings.ServiceChatID}
	copies, failure := p.exchange(ctx, request{method: "forwardMessage", params: []param{
		service, {"from_chat_id", p.from.ID}, {"message_id", id}, {"disable_notification", true},
	}}, nil)
	switch {
	case failure == nil:
	case failure.Code == codeNoMessage:
		return nil, false, nil
	case failure.Code == codeNotForwardable: // a service message: a pin, a new member
		return nil, true, nil
	default:
		return nil, false, failure
	}
	// A copy that remains does no harm. The answer is not a message.
	_, _ = p.exchange(ctx, request{method: "deleteMessage", params: []param{service, {"message_id", *copies[0].MessageID}}}, nil)
	p.copied, p.pause = true, p.adapter.pauses.afterCopy
	return &copies[0], true, nil
}

// wait waits for the pause after the last call, and extends the lease after each copy.
func (p *probe) wait(ctx context.Context) *autopost.Error {
	if p.copied {
		if err := p.call.Renew(ctx); err != nil {
			return undecided("%s", p.hide.Text(err.Error()))
		}
	}
	timer := time.NewTimer(p.pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return undecided("the time for the search is over")
	}
}

var _ autopost.Reconciler = (*Adapter)(nil)
