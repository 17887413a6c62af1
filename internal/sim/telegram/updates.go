package telegram

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"autopost/internal/sim"
)

const (
	// keptFor is how long an update is tried to be brought.
	keptFor = 24 * time.Hour
	// goneAfter is how long a webhook may answer 410 before it is closed.
	goneAfter = 23 * time.Hour
	// longestAsked bounds the Retry-After of a webhook's answer.
	longestAsked = time.Hour
	// firstUpdate is a bot's first update_id.
	firstUpdate = 90_001
)

// unlisted are the types that a webhook without allowed_updates is not sent.
var unlisted = []string{"chat_member", "message_reaction", "message_reaction_count"}

// update waits to be brought.
type update struct {
	kind     string
	body     []byte
	born     time.Time
	attempts int
}

// retryIn is how long after its attempts, the last of which failed, an update is
// tried again: at once after the first, then twice as long each time, up to a
// random time of one to two minutes; or as long as the webhook asked for.
func retryIn(attempts int, asked time.Duration) time.Duration {
	if asked > 0 {
		return min(asked, longestAsked)
	}
	if attempts <= 1 {
		return 0
	}
	most := time.Minute + time.Duration(rand.Int64N(int64(time.Minute))) //nolint:gosec // no secret, a jitter
	return min(time.Second<<min(attempts-2, 10), most)
}

// tell gives every bot an update; s.mu is held. Those without a webhook keep it for when they have one.
func (s *Server) tell(kind string, content func(b *bot) map[string]any) {
	for _, b := range s.bots {
		if b == nil {
			continue
		}
		b.lastUpdate = max(b.lastUpdate+1, firstUpdate)
		u := &update{kind: kind, body: encode(map[string]any{"update_id": b.lastUpdate, kind: content(b)}), born: time.Now()}
		b.pending = append(b.pending, u)
		if b.webhook.url != "" {
			s.send(b, u)
		}
	}
}

// send has an update brought to the bot's webhook.
func (s *Server) send(b *bot, u *update) {
	s.courier.Send(b.token, func(ctx context.Context) (time.Duration, bool) { return s.bring(ctx, b, u) })
}

// sendPending has brought what waited for a webhook; what is under way is not brought twice.
func (s *Server) sendPending(b *bot) {
	b.pending = slices.DeleteFunc(b.pending, s.aged)
	for _, u := range b.pending {
		s.send(b, u)
	}
	s.courier.Nudge(b.token)
}

// bring makes one attempt.
func (s *Server) bring(ctx context.Context, b *bot, u *update) (wait time.Duration, done bool) {
	s.mu.Lock()
	hook, dropped := b.webhook, b.webhook.url == "" || !slices.Contains(b.pending, u)
	u.attempts++
	attempt := u.attempts
	s.mu.Unlock()
	switch {
	case dropped:
		return 0, true
	case !hook.wants(u.kind):
		s.drop(b, u)
		return 0, true
	}
	header := http.Header{}
	if hook.secret != "" {
		header.Set("X-Telegram-Bot-Api-Secret-Token", hook.secret)
	}
	status, asked, err := s.courier.Deliver(ctx, sim.Push{Platform: Platform, Kind: u.kind, Attempt: attempt}, hook.url, header, u.body)
	if status >= 200 && status < 300 {
		s.drop(b, u)
		return 0, true
	}
	s.failed(b, hook.url, status, err)
	if s.aged(u) {
		s.drop(b, u)
		return 0, true
	}
	return s.core.Pace.Of(retryIn(attempt, asked)), false
}

// failed keeps what getWebhookInfo tells, and closes a webhook that has been gone for long.
func (s *Server) failed(b *bot, url string, status int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.webhook.url != url {
		return
	}
	b.webhook.failedAt = time.Now()
	b.webhook.failure = fmt.Sprintf("Wrong response from the webhook: %d %s", status, http.StatusText(status))
	if err != nil {
		b.webhook.failure = "Connection refused"
	}
	switch {
	case status != http.StatusGone:
		b.webhook.goneSince = time.Time{}
	case b.webhook.goneSince.IsZero():
		b.webhook.goneSince = time.Now()
	case time.Since(b.webhook.goneSince) > s.core.Pace.Of(goneAfter):
		b.webhook = webhook{}
	}
}

func (s *Server) drop(b *bot, u *update) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b.pending = slices.DeleteFunc(b.pending, func(p *update) bool { return p == u })
}

// aged reports whether the time of an update is over.
func (s *Server) aged(u *update) bool { return time.Since(u.born) >= s.core.Pace.Of(keptFor) }

func (w webhook) wants(kind string) bool {
	if len(w.allowedUpdates) == 0 {
		return !slices.Contains(unlisted, kind)
	}
	return slices.Contains(w.allowedUpdates, kind)
}

// user is the person who does what updates tell of.
var user = map[string]any{"id": 5001, "is_bot": false, "first_name": "Olga"}

// changed tells what became of the bots' membership of a chat; s.mu is held.
func (s *Server) changed(c *chat, before Access) {
	old := *c
	old.Access = before
	s.tell("my_chat_member", func(b *bot) map[string]any {
		return map[string]any{
			"chat": c.show(), "from": user, "date": time.Now().Unix(),
			"old_chat_member": old.member(b), "new_chat_member": c.member(b),
		}
	})
}

// service tells of something in a chat that is no post of a bot; s.mu is held.
func (s *Server) service(c *chat, more map[string]any) {
	kind := "message"
	if c.Type == "channel" {
		kind = "channel_post"
	}
	c.lastID++
	m := map[string]any{"message_id": c.lastID, "chat": c.show(), "date": time.Now().Unix()}
	if kind == "message" {
		m["from"] = user
	} else {
		m["sender_chat"] = c.show()
	}
	for name, value := range more {
		m[name] = value
	}
	s.tell(kind, func(*bot) map[string]any { return m })
}

// Say makes somebody write into a known chat; the bots that may hear it are told.
func (s *Server) Say(chatID int64, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.chats[chatID]; c != nil {
		s.service(c, map[string]any{"text": text})
	}
}

// Rename gives a known chat another title, and tells the bots in it.
func (s *Server) Rename(chatID int64, title string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.chats[chatID]; c != nil {
		c.Title = title
		s.service(c, map[string]any{"new_chat_title": title})
	}
}

// Pushes returns the attempts to bring updates, oldest first.
func (s *Server) Pushes() []sim.Push { return s.courier.Pushes() }

// Close ends the pushes.
func (s *Server) Close() { s.courier.Close() }

// describeWebhook is what getWebhookInfo answers.
func (b *bot) describeWebhook() map[string]any {
	hook := b.webhook
	info := map[string]any{"url": hook.url, "has_custom_certificate": false, "pending_update_count": len(b.pending)}
	if hook.url != "" {
		info["max_connections"] = hook.maxConnections
	}
	if len(hook.allowedUpdates) > 0 {
		info["allowed_updates"] = hook.allowedUpdates
	}
	if !hook.failedAt.IsZero() {
		info["last_error_date"], info["last_error_message"] = hook.failedAt.Unix(), hook.failure
	}
	return info
}

// member is how a bot belongs to the chat.
func (c *chat) member(b *bot) map[string]any {
	member := map[string]any{"user": b.user()}
	switch {
	case c.Access == AccessKicked:
		member["status"], member["until_date"] = "kicked", 0
	case c.Access == AccessNone:
		member["status"] = "left"
	case c.Access == AccessMember || c.Type == "private":
		member["status"] = "member"
	case c.Access == AccessReadOnly && c.Type != "channel":
		member["status"], member["is_member"], member["can_send_messages"] = "restricted", true, false
	default:
		may := c.Access == AccessAdmin
		member["status"], member["can_be_edited"], member["can_manage_chat"] = "administrator", false, true
		member["can_delete_messages"] = may
		if c.Type == "channel" {
			member["can_post_messages"], member["can_edit_messages"] = may, may
		}
	}
	return member
}

// validateHook says what is wrong with a webhook's address.
func (s *Server) validateHook(scheme, port string) *refusal {
	switch {
	case s.opts.Local:
		return nil
	case scheme != "https":
		return badRequest("bad webhook: An HTTPS URL must be provided for webhook")
	case !slices.Contains(webhookPorts, port):
		return badRequest("bad webhook: Webhook can be set up only on ports 80, 88, 443 or 8443")
	}
	return nil
}
