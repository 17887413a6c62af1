package maxmessenger

import (
	"fmt"
	"strconv"
	"time"

	"autopost/internal/sim"
)

// press is a press that a bot may answer.
type press struct {
	bot  *bot
	chat *chat
}

// answer is the body of POST /answers.
type answer struct {
	Message      *newMessage `json:"message"`
	Notification *string     `json:"notification"`
}

// Press makes a person press the button with a text below a message. The bot that sent the message gets an update. It
// returns the id of the press, or an error if there is no such button.
func (s *Server) Press(mid string, by sim.Person, button string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.messages[mid]
	if m == nil {
		return "", fmt.Errorf("there is no message %s", mid)
	}
	for _, row := range m.content.buttons {
		for _, b := range row {
			if b.Text == button && b.Data != "" {
				return s.press(m, by, b.Data), nil
			}
		}
	}
	return "", fmt.Errorf("message %s has no button %q", mid, button)
}

// press sends the update of a press. The caller holds s.mu.
func (s *Server) press(m *message, by sim.Person, data string) string {
	s.lastSeq++
	id := fmt.Sprintf("f9LHod%016x", uint64(s.lastSeq))
	s.presses[id] = press{bot: m.sender, chat: m.chat}
	now := time.Now().UnixMilli()
	s.push(m.sender, "message_callback", map[string]any{
		"user_locale": "ru", "message": s.show(m),
		"callback": map[string]any{
			"timestamp": now, "callback_id": id, "payload": data,
			"user": map[string]any{"user_id": by.ID, "first_name": by.Name, "name": by.Name, "is_bot": false, "last_activity_time": now},
		},
	})
	return id
}

// answerPress shows a notification to the person of a press.
func (s *Server) answerPress(c call) (outcome, *refusal) {
	var body answer
	if refused := strict(c.body, &body); refused != nil {
		return outcome{}, refused
	}
	id := c.query.Get("callback_id")
	p, known := s.presses[id]
	c.log.ReplyTo = id
	switch {
	case body.Message == nil && body.Notification == nil:
		return outcome{}, payload("Invalid request. `message` or `notification` required")
	case !known || p.bot != c.bot:
		return outcome{}, notFound("Callback " + id + " not found")
	case body.Message != nil:
		return outcome{}, payload("The simulator answers with notifications only")
	}
	key := "chat " + c.bot.token + " " + strconv.FormatInt(p.chat.ID, 10)
	if s.buckets.Take(1, sim.Claim{Key: key, Rate: s.limits.Chat}) > 0 {
		return outcome{}, tooManyRequests()
	}
	c.log.Text, c.log.Chat = *body.Notification, strconv.FormatInt(p.chat.ID, 10)
	return outcome{body: success}, nil
}
