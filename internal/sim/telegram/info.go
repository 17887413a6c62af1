package telegram

import (
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"time"
)

type webhook struct {
	url            string
	secret         string
	maxConnections int
	allowedUpdates []string
	// failedAt and failure are those of the last failed push. goneSince is the time of the first 410 in a row.
	failedAt, goneSince time.Time
	failure             string
}

func (b *bot) user() map[string]any {
	return map[string]any{"id": b.id, "is_bot": true, "first_name": "Sim " + strconv.FormatInt(b.id, 10), "username": b.username}
}

func (c *chat) show() map[string]any {
	out := map[string]any{"id": c.ID, "type": c.Type}
	if c.Type == "private" {
		out["first_name"] = c.Title
	} else {
		out["title"] = c.Title
	}
	if c.Username != "" {
		out["username"] = c.Username
	}
	return out
}

func (s *Server) getMe(c call) (outcome, *refusal) {
	me := c.bot.user()
	for _, name := range []string{"can_join_groups", "can_read_all_group_messages", "supports_inline_queries"} {
		me[name] = name == "can_join_groups"
	}
	return outcome{result: me}, nil
}

func (s *Server) getChat(c call) (outcome, *refusal) {
	of, refused := s.reach(c.args.values["chat_id"])
	if refused != nil {
		return outcome{}, refused
	}
	info := of.show()
	info["accent_color_id"], info["max_reaction_count"] = 0, 11
	if of.Protected {
		info["has_protected_content"] = true
	}
	if len(of.Threads) > 0 {
		info["is_forum"] = true
	}
	return outcome{result: info}, nil
}

func (s *Server) getChatMember(c call) (outcome, *refusal) {
	id := c.args.values["chat_id"]
	if id == "" {
		return outcome{}, badRequest("chat_id is empty")
	}
	of := s.chat(id)
	if of == nil {
		return outcome{}, badRequest("chat not found")
	}
	if c.args.values["user_id"] != strconv.FormatInt(c.bot.id, 10) {
		return outcome{}, badRequest("PARTICIPANT_ID_INVALID")
	}
	if of.Type == "channel" && of.Access == AccessMember {
		return outcome{}, badRequest("member list is inaccessible")
	}
	return outcome{result: of.member(c.bot)}, nil
}

var (
	secretForm   = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	webhookPorts = []string{"", "80", "88", "443", "8443"}
)

func (s *Server) setWebhook(c call) (outcome, *refusal) {
	target := c.args.values["url"]
	if target == "" {
		return s.deleteWebhook(c)
	}
	u, err := url.Parse(target)
	if err != nil || u.Host == "" {
		return outcome{}, badRequest("invalid webhook URL specified")
	}
	if refused := s.validateHook(u.Scheme, u.Port()); refused != nil {
		return outcome{}, refused
	}
	if secret := c.args.values["secret_token"]; secret != "" && (len(secret) > 256 || !secretForm.MatchString(secret)) {
		return outcome{}, badRequest("secret token contains unallowed characters")
	}
	hook := webhook{url: target, secret: c.args.values["secret_token"], maxConnections: 40}
	if n, err := strconv.Atoi(c.args.values["max_connections"]); err == nil && n >= 1 {
		hook.maxConnections = min(n, 100)
	}
	if _, err := c.args.object("allowed_updates", &hook.allowedUpdates); err != nil {
		return outcome{}, badRequest("can't parse allowed_updates JSON array")
	}
	description := "Webhook was set"
	if c.bot.webhook.url == target {
		description = "Webhook is already set"
	}
	c.bot.webhook = hook
	s.dropPending(c)
	s.sendPending(c.bot)
	return outcome{result: true, description: description}, nil
}

func (s *Server) deleteWebhook(c call) (outcome, *refusal) {
	description := "Webhook was deleted"
	if c.bot.webhook.url == "" {
		description = "Webhook is already deleted"
	}
	c.bot.webhook = webhook{}
	s.dropPending(c)
	return outcome{result: true, description: description}, nil
}

func (s *Server) getWebhookInfo(c call) (outcome, *refusal) {
	return outcome{result: c.bot.describeWebhook()}, nil
}

// dropPending removes the pending updates if the call asks for it.
func (s *Server) dropPending(c call) {
	if c.args.values["drop_pending_updates"] == "true" {
		c.bot.pending = nil
	}
}

// getUpdates returns the pending updates from an offset on, and forgets those before it. It does not wait.
func (s *Server) getUpdates(c call) (outcome, *refusal) {
	if c.bot.webhook.url != "" {
		return outcome{}, &refusal{
			code:        http.StatusConflict,
			description: "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first",
		}
	}
	limit := 100
	if n, err := strconv.Atoi(c.args.values["limit"]); err == nil && n >= 1 && n <= 100 {
		limit = n
	}
	offset, _ := strconv.ParseInt(c.args.values["offset"], 10, 64) // 0 is the first one
	c.bot.pending = slices.DeleteFunc(c.bot.pending, func(u *update) bool { return s.expired(u) || u.id < offset })
	updates := []json.RawMessage{}
	for _, u := range c.bot.pending[:min(limit, len(c.bot.pending))] {
		updates = append(updates, u.body)
	}
	return outcome{result: updates}, nil
}
