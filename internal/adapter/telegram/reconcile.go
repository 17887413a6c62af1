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
	// lookBack is how much before a call began its post may seem to be made: clocks differ.
	lookBack = time.Minute
	// maxProbes is how many messages are looked at, endAfter after how many in a row that are nobody's the chat has ended.
	maxProbes = 20
	endAfter  = 3
	// A copy counts as a message to the service chat, of which there may be one a second; a miss is only a call.
	copyPause = time.Second
	missPause = 50 * time.Millisecond
)

// SettleTime implements autopost.Reconciler: a message has its id as soon as it is there.
func (*Adapter) SettleTime() time.Duration { return 0 }

// Reconcile implements autopost.Reconciler: it forwards what follows the newest known
// message of a channel or supergroup to the service chat, compares it, and deletes the copy.
// Bots cannot read a chat otherwise. Without a service chat nobody is asked.
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

func untold(format string, values ...any) *autopost.Error {
	return adapter.Refusal(autopost.Transient, autopost.ScopeDelivery, "tg_not_told", fmt.Sprintf(format, values...))
}

// probe looks for one step's messages in a chat.
type probe struct {
	*sender
	from chat
	want adapter.Look
	// size is how many messages the step makes: an album's stand one after the other.
	size int
	// after is the highest id that is known from before the call in doubt.
	after int64
	since time.Time
	// pause is how long the next call has to wait.
	pause time.Duration
}

// chat is what must be known of a chat to look into it.
type chat struct {
	ID        int64  `json:"id"`
	Type      string `json:"type"`
	Protected bool   `json:"has_protected_content"`
}

// probe finds out whether the chat can be looked into, and from where on.
func (s *sender) probe(ctx context.Context) (*probe, *autopost.Error) {
	d := s.call.Delivery
	step, _, ok := adapter.Missing(d)
	if !ok || d.LastCallAt == nil {
		return nil, untold("the delivery has no step in doubt, or does not say since when")
	}
	p := &probe{sender: s, size: max(1, len(step.Items)), since: d.LastCallAt.Add(-lookBack)}
	if p.after = newest(d); p.after == 0 {
		return nil, untold("no message of the chat is known from before the call")
	}
	if failure := (checker{adapter: s.adapter, secret: s.call.Secret, hide: s.hide}).ask(ctx, "getChat", url.Values{"chat_id": {s.chat}}, &p.from); failure != nil {
		return nil, failure
	}
	switch {
	case p.from.ID == s.settings.ServiceChatID:
		return nil, untold("the service chat is the channel itself")
	case p.from.Type != "channel" && p.from.Type != "supergroup":
		return nil, untold("a %s has no ids of its own that grow", p.from.Type)
	case p.from.Protected || s.settings.ProtectContent:
		return nil, untold("what is protected cannot be forwarded")
	}
	var failure *autopost.Error
	p.want, failure = s.wanted(ctx, step)
	return p, failure
}

// newest is the highest id that is known to be older than the missing step; 0 for none.
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

// wanted is what the step's messages look like together.
func (s *sender) wanted(ctx context.Context, step autopost.Step) (adapter.Look, *autopost.Error) {
	var want adapter.Look
	texts := []string{s.call.Delivery.Said(step)}
	if len(step.Items) > 0 {
		items, failure := s.items(ctx, step)
		if failure != nil {
			return adapter.Look{}, failure
		}
		texts = nil
		for _, it := range items {
			texts = append(texts, it.caption)
			want.Media = append(want.Media, adapter.Shown{Kind: it.kind, ID: it.fileID})
		}
	}
	for i, text := range texts {
		if s.call.Delivery.RenderMeta.ParseMode != "" {
			texts[i] = adapter.Plain(text)
		}
	}
	want.Text = adapter.Squeeze(strings.Join(texts, "\n"))
	return want, nil
}

// run gives the ids of the step's messages; none says that the chat ends without them.
func (p *probe) run(ctx context.Context) ([]string, *autopost.Error) {
	others := adapter.Others(p.call.Delivery)
	var unit []message // the newest messages, one after the other, that nobody else is known to have made
	unclear, misses := int64(0), 0
	for id, probes := p.after+1, 0; probes < maxProbes; id++ {
		if slices.Contains(others, strconv.FormatInt(id, 10)) {
			unit, misses = nil, 0
			continue
		}
		probes++
		m, there, failure := p.forwarded(ctx, id)
		switch {
		case failure != nil:
			return nil, failure
		case m == nil:
			unit = nil
		default:
			unit = append(unit, *m)
			unit = unit[max(0, len(unit)-p.size):]
		}
		misses++
		if there {
			misses = 0
		}
		switch p.compare(unit) {
		case adapter.Same:
			return p.ids(id), nil
		case adapter.Unclear:
			unclear = id
		case adapter.Different:
		}
		if misses < endAfter {
			continue
		}
		if unclear != 0 {
			return nil, untold("message %d may be the post, or another's", unclear)
		}
		return nil, nil
	}
	return nil, untold("the chat has had %d messages or more that nobody is known to have made", maxProbes)
}

// ids are those of the messages that end with this one.
func (p *probe) ids(last int64) []string {
	ids := make([]string, p.size)
	for i := range ids {
		ids[i] = strconv.FormatInt(last-int64(p.size-1-i), 10)
	}
	return ids
}

// compare says whether messages that stand together are the step's.
func (p *probe) compare(unit []message) adapter.Likeness {
	if len(unit) < p.size {
		return adapter.Different
	}
	var look adapter.Look
	var texts []string
	likeness := adapter.Same
	for _, m := range unit {
		texts = append(texts, m.Text+m.Caption)
		if kind := m.kind(); kind != "" {
			look.Media = append(look.Media, adapter.Shown{Kind: kind, ID: m.fileID(kind)})
		}
		likeness = min(likeness, p.author(m.ForwardOrigin))
	}
	look.Text = adapter.Squeeze(strings.Join(texts, "\n"))
	return min(likeness, p.want.Compare(look, p.call.Delivery))
}

// author says whether a message may be ours by who made it, and when. A bot's id is the head of its token.
func (p *probe) author(o origin) adapter.Likeness {
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

// forwarded looks at one message by a copy that it deletes again. Nil is one that
// cannot be ours; there is false where the id is nobody's.
func (p *probe) forwarded(ctx context.Context, id int64) (m *message, there bool, failure *autopost.Error) {
	if failure := p.rest(ctx); failure != nil {
		return nil, false, failure
	}
	p.pause = missPause
	service := param{"chat_id", p.settings.ServiceChatID}
	copies, failure := p.exchange(ctx, request{method: "forwardMessage", params: []param{
		service, {"from_chat_id", p.from.ID}, {"message_id", id}, {"disable_notification", true},
	}}, nil)
	switch {
	case failure == nil:
	case failure.Code == codeNoMessage:
		return nil, false, nil
	case failure.Code == codeNotForwardable: // ours could be: it says so of joins, pins and the like
		return nil, true, nil
	default:
		return nil, false, failure
	}
	// A copy that cannot be deleted harms nobody, and its answer is not a message.
	_, _ = p.exchange(ctx, request{method: "deleteMessage", params: []param{service, {"message_id", copies[0].MessageID}}}, nil)
	p.pause = copyPause
	return &copies[0], true, nil
}

// rest keeps the calls apart.
func (p *probe) rest(ctx context.Context) *autopost.Error {
	if p.pause == copyPause {
		if err := p.call.Renew(ctx); err != nil {
			return untold("%s", p.hide.Text(err.Error()))
		}
	}
	timer := time.NewTimer(p.pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return untold("the time for it is over")
	}
}

var _ autopost.Reconciler = (*Adapter)(nil)
