package maxmessenger

import (
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"autopost/internal/sim"
)

// message is a stored message.
type message struct {
	mid     string
	seq     int64
	date    time.Time
	chat    *chat
	sender  *bot
	content content
}

func (b *bot) user() map[string]any {
	name := "Sim " + strconv.FormatInt(b.id, 10)
	return map[string]any{
		"user_id": b.id, "first_name": name, "name": name, "username": "sim_" + strconv.FormatInt(b.id, 10) + "_bot",
		"is_bot": true, "last_activity_time": time.Now().UnixMilli(),
	}
}

// show returns a message in the form of the API.
func (s *Server) show(m *message) map[string]any {
	recipient := map[string]any{"chat_id": m.chat.ID, "chat_type": m.chat.Type, "user_id": nil}
	if m.chat.Type == "dialog" {
		recipient["user_id"] = m.chat.UserID
	}
	body := map[string]any{"mid": m.mid, "seq": m.seq, "text": m.content.text, "attachments": nil}
	if len(m.content.attachments) > 0 {
		body["attachments"] = s.attachments(m)
	}
	if len(m.content.marks) > 0 {
		body["markup"] = m.content.marks
	}
	out := map[string]any{"recipient": recipient, "timestamp": m.date.UnixMilli(), "body": body, "sender": m.sender.user()}
	if m.chat.Type == "channel" && s.showing.NoSender {
		delete(out, "sender")
	}
	if m.chat.Type == "channel" {
		out["stat"] = map[string]any{"views": 0}
		if m.chat.Username != "" {
			out["url"] = "https://max.ru/" + m.chat.Username + "/" + strconv.FormatInt(m.seq, 36)
		}
	}
	return out
}

// attachments returns the attachments of a message, with new tokens if Showing asks for them.
func (s *Server) attachments(m *message) []map[string]any {
	if !s.showing.OtherTokens {
		return m.content.attachments
	}
	var shown []map[string]any
	for _, a := range m.content.attachments {
		a = maps.Clone(a)
		if p, ok := a["payload"].(map[string]any); ok {
			p = maps.Clone(p)
			p["token"] = "shown-" + sim.Digest([]byte(fmt.Sprint(m.mid, p["token"])))[:16]
			a["payload"] = p
		}
		shown = append(shown, a)
	}
	return shown
}

// target returns the chat of chat_id or user_id.
func (s *Server) target(c call) (*chat, *refusal) {
	chatID, userID := c.query.Get("chat_id"), c.query.Get("user_id")
	switch {
	case chatID == "" && userID == "":
		return nil, payload("Missing required parameter: chat_id or user_id")
	case chatID != "" && userID != "":
		return nil, payload("Must be exactly one of chat_id, user_id")
	}
	if userID != "" {
		id, err := strconv.ParseInt(userID, 10, 64)
		if err != nil {
			return nil, payload("Invalid user_id: " + userID)
		}
		to := s.dialog(id)
		if to == nil {
			return nil, &refusal{status: http.StatusNotFound, code: "error.dialog.notfound", message: "Dialog with user " + userID + " not found"}
		}
		return to, nil
	}
	return s.byID(chatID)
}

func (s *Server) byID(chatID string) (*chat, *refusal) {
	id, err := strconv.ParseInt(chatID, 10, 64)
	if err != nil {
		return nil, payload("Invalid chat_id: " + chatID)
	}
	to := s.chat(id)
	if to == nil {
		return nil, &refusal{status: http.StatusNotFound, code: "chat.not.found", message: "Chat " + chatID + " not found"}
	}
	return to, nil
}

// mayRead checks that the bot may read messages of the chat.
func (c *chat) mayRead() *refusal {
	switch {
	case c.Access == AccessNone, c.Type == "channel" && (c.Access == AccessMember || c.Access == AccessWriteOnly):
		return &refusal{status: http.StatusForbidden, code: "access.denied", message: "Access denied"}
	case c.Access == AccessSuspended:
		return &refusal{status: http.StatusForbidden, code: "chat.denied", message: "error.dialog.suspended"}
	}
	return nil
}

// mayWrite checks that the bot may write in the chat.
func (c *chat) mayWrite() *refusal {
	if c.Access == AccessReadOnly || c.Access == AccessMember && c.Type == "channel" {
		return &refusal{status: http.StatusForbidden, code: "chat.denied", message: "chat.send.msg.no.permission.because.not.admin"}
	}
	if c.Access == AccessWriteOnly {
		return nil
	}
	return c.mayRead()
}

// body decodes the message body of a call and checks its content.
func (s *Server) body(c call) (newMessage, content, *refusal) {
	var body newMessage
	if len(c.body) == 0 {
		return body, content{}, payload("Missing required parameter: body")
	}
	if refused := strict(c.body, &body); refused != nil {
		return body, content{}, refused
	}
	said, refused := s.compose(c, body)
	if refused != nil {
		c.log.Media = said.described()
		return body, content{}, refused
	}
	c.log.Text, c.log.Marks, c.log.Media, c.log.Buttons = said.text, said.marks, said.described(), said.buttons
	return body, said, nil
}

func (s *Server) send(c call) (outcome, *refusal) {
	to, refused := s.target(c)
	if refused != nil {
		return outcome{}, refused
	}
	if refused := to.mayWrite(); refused != nil {
		return outcome{}, refused
	}
	body, said, refused := s.body(c)
	if refused != nil {
		return outcome{}, refused
	}
	if to.Type == "channel" && body.Notify != nil && !*body.Notify {
		return outcome{}, payload("Field 'notify' must be true in a channel")
	}
	if strings.TrimSpace(said.text) == "" && len(said.attachments) == 0 && !said.linked {
		return outcome{}, payload("Missing required parameter: text or attachments")
	}
	key := "chat " + c.bot.token + " " + strconv.FormatInt(to.ID, 10)
	if s.buckets.Take(1, sim.Claim{Key: key, Rate: s.limits.Chat}) > 0 {
		return outcome{}, tooManyRequests()
	}
	if body.Notify != nil && !*body.Notify {
		c.log.Badges = append(c.log.Badges, "silent")
	}
	m := s.store(c.bot, to, said)
	return outcome{body: map[string]any{"message": s.show(m)}, mid: m.mid}, nil
}

func (s *Server) store(b *bot, to *chat, said content) *message {
	now := time.Now()
	// The real numbers consist of the time in milliseconds and always increase.
	s.lastSeq = max(s.lastSeq+1, now.UnixMilli()<<16)
	m := &message{
		mid: fmt.Sprintf("mid.%016x%016x", uint64(to.ID), uint64(s.lastSeq)),
		seq: s.lastSeq, date: now, chat: to, sender: b, content: said,
	}
	s.messages[m.mid] = m
	to.order = append(to.order, m)
	if len(to.order) > remembered {
		delete(s.messages, to.order[0].mid)
		to.order = to.order[1:]
	}
	return m
}

// find returns a message that the bot can see.
func (s *Server) find(mid string) (*message, *refusal) {
	if mid == "" {
		return nil, payload("Missing required parameter: message_id")
	}
	m := s.messages[mid]
	if m == nil || m.chat.mayRead() != nil {
		return nil, notFound("Message " + mid + " not found")
	}
	return m, nil
}

func (s *Server) get(c call) (outcome, *refusal) {
	m, refused := s.find(c.id)
	if refused != nil {
		return outcome{}, refused
	}
	return outcome{body: s.show(m)}, nil
}

func (s *Server) list(c call) (outcome, *refusal) {
	shown := []any{}
	if ids := c.query.Get("message_ids"); ids != "" {
		for mid := range strings.SplitSeq(ids, ",") {
			if m, refused := s.find(mid); refused == nil {
				shown = append(shown, s.show(m))
			}
		}
		return outcome{body: map[string]any{"messages": shown}}, nil
	}
	in, refused := s.byID(c.query.Get("chat_id"))
	if refused != nil {
		return outcome{}, refused
	}
	if refused := in.mayRead(); refused != nil {
		return outcome{}, refused
	}
	count := 50
	if given := c.query.Get("count"); given != "" {
		n, err := strconv.Atoi(given)
		if err != nil || n < 1 || n > 100 {
			return outcome{}, payload("Field 'count' must be from 1 to 100")
		}
		count = n
	}
	if c.query.Has("from") || c.query.Has("to") {
		c.note("from and to are deprecated and ignored: their meaning was never clear")
	}
	before, refused := c.instant("before", math.MaxInt64)
	if refused != nil {
		return outcome{}, refused
	}
	after, refused := c.instant("after", math.MinInt64)
	if refused != nil {
		return outcome{}, refused
	}
	for _, m := range slices.Backward(in.order) {
		if at := m.date.UnixMilli(); at >= before || at <= after {
			continue
		}
		if len(shown) == count {
			break
		}
		shown = append(shown, s.show(m))
	}
	return outcome{body: map[string]any{"messages": shown}}, nil
}

// instant reads a query parameter that is a Unix time in milliseconds.
func (c call) instant(name string, absent int64) (int64, *refusal) {
	given := c.query.Get(name)
	if given == "" {
		return absent, nil
	}
	at, err := strconv.ParseInt(given, 10, 64)
	if err != nil || at < 0 {
		return 0, payload("Invalid " + name + ": " + given)
	}
	return at, nil
}

// editable is how long a message without buttons can be edited in a dialog.
const editable = 7 * 24 * time.Hour

var success = map[string]any{"success": true}

func (s *Server) edit(c call) (outcome, *refusal) {
	m, refused := s.find(c.query.Get("message_id"))
	if refused != nil {
		return outcome{}, refused
	}
	if refused := m.chat.mayWrite(); refused != nil {
		return outcome{}, refused
	}
	if m.sender != c.bot {
		return outcome{body: map[string]any{"success": false, "message": "Message is not the bot's own"}}, nil
	}
	if m.chat.Type == "dialog" && len(m.content.buttons) == 0 && time.Since(m.date) > s.core.Pace.Of(editable) {
		return outcome{body: map[string]any{"success": false, "message": "Message is too old to be edited"}}, nil
	}
	body, said, refused := s.body(c)
	if refused != nil {
		return outcome{}, refused
	}
	if body.Text == nil {
		said.text, said.marks = m.content.text, m.content.marks
	}
	if body.Attachments == nil {
		said.attachments, said.media, said.buttons = m.content.attachments, m.content.media, m.content.buttons
	}
	m.content = said
	c.log.Edited = []string{m.mid}
	return outcome{body: success}, nil
}

func (s *Server) remove(c call) (outcome, *refusal) {
	m, refused := s.find(c.query.Get("message_id"))
	if refused != nil {
		return outcome{}, refused
	}
	if refused := m.chat.mayWrite(); refused != nil {
		return outcome{}, refused
	}
	delete(s.messages, m.mid)
	m.chat.order = slices.DeleteFunc(m.chat.order, func(o *message) bool { return o == m })
	if m.chat.pinned == m {
		m.chat.pinned = nil
	}
	c.log.Removed = []string{m.mid}
	return outcome{body: success}, nil
}

func (s *Server) me(c call) (outcome, *refusal) {
	me := c.bot.user()
	me["commands"] = nil
	return outcome{body: me}, nil
}

func (s *Server) getChat(c call) (outcome, *refusal) {
	in, refused := s.byID(c.id)
	if refused != nil {
		return outcome{}, refused
	}
	status := "active"
	if in.Access == AccessNone {
		status = "removed"
	}
	info := map[string]any{
		"chat_id": in.ID, "type": in.Type, "status": status, "title": in.Title, "participants_count": 2,
		"is_public": in.Username != "", "description": nil, "icon": nil, "messages_count": len(in.order), "last_event_time": time.Now().UnixMilli(),
	}
	if in.Username != "" {
		info["link"] = "https://max.ru/" + in.Username
	}
	return outcome{body: info}, nil
}

func (s *Server) membership(c call) (outcome, *refusal) {
	in, refused := s.byID(c.id)
	if refused != nil {
		return outcome{}, refused
	}
	if in.Access == AccessNone {
		return outcome{}, &refusal{status: http.StatusForbidden, code: "access.denied", message: "Access denied"}
	}
	member := c.bot.user()
	member["last_access_time"], member["join_time"] = time.Now().UnixMilli(), time.Now().UnixMilli()
	member["is_owner"], member["is_admin"] = false, in.Access != AccessMember
	switch in.Access {
	case AccessAdmin:
		member["permissions"] = []string{"read_all_messages", "write", "edit", "delete"}
	case AccessWriteOnly:
		member["permissions"] = []string{"write", "edit", "delete"}
	case AccessReadOnly:
		member["permissions"] = []string{"read_all_messages"}
	}
	return outcome{body: member}, nil
}
