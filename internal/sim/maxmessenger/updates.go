package maxmessenger

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"autopost/internal/sim"
)

const (
	// retries is the number of repetitions of an update.
	retries = 10
	// firstRetry is the wait before the first repetition. Each further wait is 2.5 times as long.
	firstRetry = 60 * time.Second
	// failingLimit is how long a subscription may fail before it ends.
	failingLimit = 8 * time.Hour
)

var secretForm = regexp.MustCompile(`^[a-zA-Z0-9_-]{5,}$`)

// subscription is a webhook of a bot.
type subscription struct {
	url, secret string
	// types are the types of updates; nil means all.
	types []string
	made  time.Time
	// failingSince is the time of the first failed push in a row.
	failingSince time.Time
	ended        bool
}

// retryIn is the wait before a repetition, counted from 1.
func retryIn(retry int) time.Duration {
	return time.Duration(float64(firstRetry) * math.Pow(2.5, float64(retry-1)))
}

func (s *Server) subscriptions(c call) (outcome, *refusal) {
	list := []map[string]any{}
	for _, sub := range c.bot.subs {
		list = append(list, map[string]any{"url": sub.url, "time": sub.made.UnixMilli(), "update_types": sub.types})
	}
	return outcome{body: map[string]any{"subscriptions": list}}, nil
}

// subscribe adds a subscription, or replaces that with the same URL.
func (s *Server) subscribe(c call) (outcome, *refusal) {
	var asked struct {
		URL         string   `json:"url"`
		UpdateTypes []string `json:"update_types"`
		Secret      string   `json:"secret"`
	}
	if json.Unmarshal(c.body, &asked) != nil {
		return outcome{}, payload("Cannot parse request body")
	}
	u, err := url.Parse(asked.URL)
	switch {
	case err != nil || u.Host == "":
		return outcome{}, payload("Invalid webhook URL: " + asked.URL)
	case !s.opts.AnyHook && (u.Scheme != "https" || u.Port() != "" && u.Port() != "443"):
		return outcome{}, payload("Webhook URL must use https on port 443")
	case asked.Secret != "" && (len(asked.Secret) > 256 || !secretForm.MatchString(asked.Secret)):
		return outcome{}, payload("Invalid secret")
	}
	s.end(c.bot, asked.URL)
	c.bot.subs = append(c.bot.subs, &subscription{url: asked.URL, secret: asked.Secret, types: asked.UpdateTypes, made: time.Now()})
	return outcome{body: map[string]any{"success": true}}, nil
}

func (s *Server) unsubscribe(c call) (outcome, *refusal) {
	if !s.end(c.bot, c.query.Get("url")) {
		return outcome{body: map[string]any{"success": false, "message": "Subscription not found"}}, nil
	}
	return outcome{body: map[string]any{"success": true}}, nil
}

// end removes a bot's subscription and reports whether there was one. The caller holds s.mu.
func (s *Server) end(b *bot, address string) bool {
	before := len(b.subs)
	b.subs = slices.DeleteFunc(b.subs, func(sub *subscription) bool {
		sub.ended = sub.ended || sub.url == address
		return sub.url == address
	})
	return len(b.subs) < before
}

// Unsubscribe ends all subscriptions of a bot, as the server does if they fail for too long.
func (s *Server) Unsubscribe(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.bots[token]; b != nil {
		for _, sub := range slices.Clone(b.subs) {
			s.end(b, sub.url)
		}
	}
}

// notify sends an update to the subscriptions of all bots that want its type. The caller holds s.mu.
func (s *Server) notify(kind string, content map[string]any) {
	for _, b := range s.bots {
		if b != nil {
			s.push(b, kind, content)
		}
	}
}

// push sends an update to the subscriptions of a bot that want its type. The caller holds s.mu.
func (s *Server) push(b *bot, kind string, content map[string]any) {
	content["update_type"], content["timestamp"] = kind, time.Now().UnixMilli()
	body := encode(content)
	if len(b.subs) == 0 {
		b.lastMarker++
		b.waiting = append(b.waiting, waitingUpdate{b.lastMarker, kind, body})
		b.waiting = b.waiting[max(0, len(b.waiting)-mostWaiting):]
	}
	for _, sub := range b.subs {
		if sub.types != nil && !slices.Contains(sub.types, kind) {
			continue
		}
		attempt := 0
		s.webhooks.Send(b.token+" "+sub.url, func(ctx context.Context) (time.Duration, bool) {
			attempt++
			return s.deliver(ctx, b, sub, sim.Push{Platform: Platform, Kind: kind, Attempt: attempt}, body)
		})
	}
}

// mostWaiting is how many updates a bot without a subscription keeps.
const mostWaiting = 10_000

// waitingUpdate is an update for a bot without a subscription.
type waitingUpdate struct {
	marker int64
	kind   string
	body   json.RawMessage
}

// updates returns the waiting updates after a marker, and forgets those up to it. It does not wait for new ones. A bot
// with a subscription gets none.
func (s *Server) updates(c call) (outcome, *refusal) {
	limit := 100
	if n, err := strconv.Atoi(c.query.Get("limit")); err == nil && n >= 1 && n <= 1000 {
		limit = n
	}
	marker, _ := strconv.ParseInt(c.query.Get("marker"), 10, 64) // 0 is the first one
	c.bot.waiting = slices.DeleteFunc(c.bot.waiting, func(u waitingUpdate) bool { return u.marker <= marker })
	list := []json.RawMessage{}
	if len(c.bot.subs) == 0 {
		for _, u := range c.bot.waiting[:min(limit, len(c.bot.waiting))] {
			if types := c.query.Get("types"); types == "" || slices.Contains(strings.Split(types, ","), u.kind) {
				list = append(list, u.body)
			}
			marker = u.marker
		}
	}
	return outcome{body: map[string]any{"updates": list, "marker": marker}}, nil
}

// deliver makes one attempt to deliver an update. It returns the wait before the next one.
func (s *Server) deliver(ctx context.Context, b *bot, sub *subscription, p sim.Push, body []byte) (wait time.Duration, done bool) {
	s.mu.Lock()
	ended := sub.ended
	s.mu.Unlock()
	if ended {
		return 0, true
	}
	header := http.Header{}
	if sub.secret != "" {
		header.Set("X-Max-Bot-Api-Secret", sub.secret)
	}
	status, _, err := s.webhooks.Deliver(ctx, p, sub.url, header, body)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && status == http.StatusOK {
		sub.failingSince = time.Time{}
		return 0, true
	}
	if sub.failingSince.IsZero() {
		sub.failingSince = time.Now()
	}
	left := s.core.Pace.Of(failingLimit) - time.Since(sub.failingSince)
	if left <= 0 {
		s.end(b, sub.url)
	}
	if left <= 0 || p.Attempt > retries {
		return 0, true
	}
	return min(s.core.Pace.Of(retryIn(p.Attempt)), left), false
}

// changed sends the new membership of the bots in a chat. The caller holds s.mu.
func (s *Server) changed(c *chat, before Access) {
	content := map[string]any{"chat_id": c.ID, "user": person(), "is_channel": c.Type == "channel"}
	switch {
	case c.Type == "dialog" && c.Access == AccessSuspended:
		s.notify("bot_stopped", map[string]any{"chat_id": c.ID, "user": person(), "user_locale": "ru"})
	case c.Type == "dialog" && before == AccessSuspended:
		s.notify("bot_started", map[string]any{"chat_id": c.ID, "user": person(), "user_id": c.UserID, "user_locale": "ru"})
	case c.Access == AccessNone:
		s.notify("bot_removed", content)
	case before == AccessNone:
		s.notify("bot_added", content)
	}
}

// person is the user of all updates.
func person() map[string]any {
	return map[string]any{"user_id": 5001, "first_name": "Olga", "name": "Olga", "is_bot": false, "last_activity_time": time.Now().UnixMilli()}
}

// Rename changes the title of a known chat. The bots get an update.
func (s *Server) Rename(chatID int64, title string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.chats[chatID]; c != nil {
		c.Title = title
		s.notify("chat_title_changed", map[string]any{"chat_id": c.ID, "user": person(), "title": title})
	}
}

// Say makes a user write into a known chat. The bots get an update.
func (s *Server) Say(chatID int64, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chats[chatID]
	if c == nil {
		return
	}
	s.lastSeq++
	now := time.Now().UnixMilli()
	s.notify("message_created", map[string]any{"user_locale": "ru", "message": map[string]any{
		"recipient": map[string]any{"chat_id": c.ID, "chat_type": c.Type, "user_id": nil}, "timestamp": now, "sender": person(),
		"body": map[string]any{"mid": fmt.Sprintf("mid.%016x%016x", uint64(c.ID), s.lastSeq), "seq": s.lastSeq, "text": text},
	}})
}

// Pushes returns the attempts to deliver updates, oldest first.
func (s *Server) Pushes() []sim.Push { return s.webhooks.Pushes() }

// Close stops the delivery of updates.
func (s *Server) Close() { s.webhooks.Close() }
