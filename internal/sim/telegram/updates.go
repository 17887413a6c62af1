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
	// maxAge is how long the delivery of an update is retried.
	maxAge = 24 * time.Hour
	// goneAfter is how long a webhook may answer 410 before it is removed.
	goneAfter = 23 * time.Hour
	// maxRetryAfter limits the Retry-After of a webhook's answer.
	maxRetryAfter = time.Hour
	// firstUpdate is the first update_id of a bot.
	firstUpdate = 90_001
)

// unlisted are the types of updates that a webhook without allowed_updates does not get.
var unlisted = []string{"chat_member", "message_reaction", "message_reaction_count"}

// update is an update that no webhook has accepted yet.
type update struct {
	id       int64
	kind     string
	body     []byte
	born     time.Time
	attempts int
}

// retryIn is the wait after the last of some failed attempts: the webhook's own Retry-After, else nothing
// after the first attempt, then a doubling wait up to a random time of one to two minutes.
func retryIn(attempts int, asked time.Duration) time.Duration {
	if asked > 0 {
		return min(asked, maxRetryAfter)
	}
	if attempts <= 1 {
		return 0
	}
	most := time.Minute + time.Duration(rand.Int64N(int64(time.Minute))) //nolint:gosec // jitter, not a secret
	return min(time.Second<<min(attempts-2, 10), most)
}

// notify adds an update to each bot and sends it to the bots with a webhook. The caller holds s.mu.
func (s *Server) notify(kind string, content func(b *bot) map[string]any) {
	for _, b := range s.bots {
		if b != nil {
			s.push(b, kind, content(b))
		}
	}
}

// push adds an update to a bot and sends it if the bot has a webhook. The caller holds s.mu.
func (s *Server) push(b *bot, kind string, content map[string]any) {
	b.lastUpdate = max(b.lastUpdate+1, firstUpdate)
	u := &update{id: b.lastUpdate, kind: kind, body: encode(map[string]any{"update_id": b.lastUpdate, kind: content}), born: time.Now()}
	b.pending = append(b.pending, u)
	if b.webhook.url != "" {
		s.send(b, u)
	}
}

// send schedules the delivery of an update.
func (s *Server) send(b *bot, u *update) {
	s.webhooks.Send(b.token, func(ctx context.Context) (time.Duration, bool) { return s.deliver(ctx, b, u) })
}

// sendPending schedules the delivery of all pending updates.
func (s *Server) sendPending(b *bot) {
	b.pending = slices.DeleteFunc(b.pending, s.expired)
	for _, u := range b.pending {
		s.send(b, u)
	}
	s.webhooks.Nudge(b.token)
}

// deliver makes one attempt to deliver an update. It returns the wait before the next one.
func (s *Server) deliver(ctx context.Context, b *bot, u *update) (wait time.Duration, done bool) {
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
	status, asked, err := s.webhooks.Deliver(ctx, sim.Push{Platform: Platform, Kind: u.kind, Attempt: attempt}, hook.url, header, u.body)
	if status >= 200 && status < 300 {
		s.drop(b, u)
		return 0, true
	}
	s.failed(b, hook.url, status, err)
	if s.expired(u) {
		s.drop(b, u)
		return 0, true
	}
	return s.core.Pace.Of(retryIn(attempt, asked)), false
}

// failed records a failure for getWebhookInfo. It removes a webhook that answered 410 for goneAfter.
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

// expired reports whether an update is older than maxAge.
func (s *Server) expired(u *update) bool { return time.Since(u.born) >= s.core.Pace.Of(maxAge) }

// wants reports whether the webhook gets updates of a type.
func (w webhook) wants(kind string) bool {
	if len(w.allowedUpdates) == 0 {
		return !slices.Contains(unlisted, kind)
	}
	return slices.Contains(w.allowedUpdates, kind)
}

// user is the person in the "from" field of all updates.
var user = map[string]any{"id": 5001, "is_bot": false, "first_name": "Olga"}

// changed sends the new membership of each bot in a chat. The caller holds s.mu.
func (s *Server) changed(c *chat, before Access) {
	old := *c
	old.Access = before
	s.notify("my_chat_member", func(b *bot) map[string]any {
		return map[string]any{
			"chat": c.show(), "from": user, "date": time.Now().Unix(),
			"old_chat_member": old.member(b), "new_chat_member": c.member(b),
		}
	})
}

// service sends a message that no bot posted. The caller holds s.mu.
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
	s.notify(kind, func(*bot) map[string]any { return m })
}

// Say makes a user write into a known chat. The bots get an update.
func (s *Server) Say(chatID int64, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.chats[chatID]; c != nil {
		s.service(c, map[string]any{"text": text})
	}
}

// Rename changes the title of a known chat. The bots get an update.
func (s *Server) Rename(chatID int64, title string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.chats[chatID]; c != nil {
		c.Title = title
		s.service(c, map[string]any{"new_chat_title": title})
	}
}

// Pushes returns the attempts to deliver updates, oldest first.
func (s *Server) Pushes() []sim.Push { return s.webhooks.Pushes() }

// Close stops the delivery of updates.
func (s *Server) Close() { s.webhooks.Close() }

// describeWebhook returns the result of getWebhookInfo.
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

// member returns a bot's membership of the chat, as the API shows it.
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

// validateHook checks the URL of a webhook.
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
