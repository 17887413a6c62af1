package telegram

import (
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"autopost/internal/sim"
)

const (
	// answerable is how long a press may be answered. The real server does not state it.
	answerable = 15 * time.Minute
	// maxAnswer is the length of an answer in characters.
	maxAnswer = 200
)

// press is a press that a bot may answer.
type press struct {
	bot  *bot
	chat int64
	at   time.Time
}

// Press makes a person press the button with a text below a message. The bot that sent the message gets an update. It
// returns the id of the press, or an error if there is no such button.
func (s *Server) Press(chatID, messageID int64, by sim.Person, button string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chats[chatID]
	if c == nil || c.messages[messageID] == nil {
		return "", fmt.Errorf("chat %d has no message %d", chatID, messageID)
	}
	m := c.messages[messageID]
	for _, row := range m.buttons {
		for _, b := range row {
			if b.Text == button && b.Data != "" {
				return s.press(c, m, by, b.Data), nil
			}
		}
	}
	return "", fmt.Errorf("message %d in chat %d has no button %q", messageID, chatID, button)
}

// PressAgain makes a person press a button that a client still shows, although the message has changed.
func (s *Server) PressAgain(chatID, messageID int64, by sim.Person, data string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chats[chatID]
	if c == nil || c.messages[messageID] == nil {
		return "", fmt.Errorf("chat %d has no message %d", chatID, messageID)
	}
	return s.press(c, c.messages[messageID], by, data), nil
}

// press sends the update of a press. The caller holds s.mu.
func (s *Server) press(c *chat, m *message, by sim.Person, data string) string {
	s.serial++
	id := strconv.FormatUint(4_000_000_000_000_000_000+s.serial, 10)
	s.presses[id] = press{bot: m.sender, chat: c.ID, at: time.Now()}
	shown := m.show(c)
	s.push(m.sender, "callback_query", map[string]any{
		"id": id, "from": map[string]any{"id": by.ID, "is_bot": false, "first_name": by.Name}, "message": shown,
		"chat_instance": strconv.FormatInt(-c.ID, 10), "data": data,
	})
	return id
}

// answerCallbackQuery shows a text to the person of a press.
func (s *Server) answerCallbackQuery(c call) (outcome, *refusal) {
	id, text := c.args.values["callback_query_id"], c.args.values["text"]
	p, known := s.presses[id]
	c.log.Text, c.log.ReplyTo = text, id
	switch {
	case !known || p.bot != c.bot || time.Since(p.at) > s.core.Pace.Of(answerable):
		return outcome{}, badRequest("query is too old and response timeout expired or query ID is invalid")
	case utf8.RuneCountInString(text) > maxAnswer:
		return outcome{}, badRequest("MESSAGE_TOO_LONG")
	}
	c.log.Chat = strconv.FormatInt(p.chat, 10)
	return outcome{result: true}, nil
}
