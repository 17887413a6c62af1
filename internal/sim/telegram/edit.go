package telegram

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
)

const notModified = "message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message"

// find returns a stored message of a chat that the bot can reach.
func (s *Server) find(chatID, messageID, missing string) (*chat, *message, *refusal) {
	in, refused := s.reach(chatID)
	if refused != nil {
		return nil, nil, refused
	}
	id, err := strconv.ParseInt(messageID, 10, 64)
	if err != nil || id <= 0 {
		return nil, nil, badRequest("message identifier is not specified")
	}
	m := in.messages[id]
	if m == nil {
		return nil, nil, badRequest(missing)
	}
	return in, m, nil
}

func (s *Server) editMessageText(c call) (outcome, *refusal) {
	body, refused := c.args.source("text", "entities").message(c.note)
	if refused != nil {
		return outcome{}, refused
	}
	return s.edit(c, body, false)
}

func (s *Server) editMessageCaption(c call) (outcome, *refusal) {
	body, refused := c.args.source("caption", "caption_entities").caption(c.note)
	if refused != nil {
		return outcome{}, refused
	}
	return s.edit(c, body, true)
}

func (s *Server) edit(c call, body formatted, caption bool) (outcome, *refusal) {
	c.log.Text, c.log.Marks = body.text, body.marks()
	markup, buttons, refused := c.args.keyboard()
	if refused != nil {
		return outcome{}, refused
	}
	c.log.Buttons = buttons
	in, m, refused := s.find(c.args.values["chat_id"], c.args.values["message_id"], "message to edit not found")
	switch {
	case refused != nil:
		return outcome{}, refused
	case in.Access != AccessAdmin && in.Type != "private", m.sender != c.bot:
		return outcome{}, badRequest("message can't be edited")
	case caption && m.file == nil:
		return outcome{}, badRequest("there is no caption in the message to edit")
	case !caption && m.file != nil:
		return outcome{}, badRequest("there is no text in the message to edit")
	case m.body.text == body.text && slices.Equal(m.body.entities, body.entities) && bytes.Equal(m.markup, markup):
		return outcome{}, badRequest(notModified)
	}
	if refused := s.charge(c.bot, in, 1); refused != nil {
		return outcome{}, refused
	}
	m.body, m.markup, m.edited = body, markup, true
	return outcome{result: m.show(in)}, nil
}

func (s *Server) deleteMessage(c call) (outcome, *refusal) {
	in, m, refused := s.find(c.args.values["chat_id"], c.args.values["message_id"], "message to delete not found")
	if refused != nil {
		return outcome{}, refused
	}
	if in.Access != AccessAdmin && m.sender != c.bot {
		return outcome{}, badRequest("message can't be deleted")
	}
	delete(in.messages, m.id)
	return outcome{result: true}, nil
}

// named is a forwarded message's file: under the id that it has, or one of its own.
func (s *Server) named(f *file) *file {
	if f == nil || !s.newNames {
		return f
	}
	s.serial++
	other := *f
	other.id = fmt.Sprintf("%s%x_fwd", idPrefix[f.kind], s.serial)
	s.files[other.id] = &other
	return &other
}

func (s *Server) forwardMessage(c call) (outcome, *refusal) {
	from, m, refused := s.find(c.args.values["from_chat_id"], c.args.values["message_id"], "message to forward not found")
	if refused != nil {
		return outcome{}, refused
	}
	if from.Protected || m.protected {
		return outcome{}, badRequest("message can't be forwarded")
	}
	forwarded := &message{body: m.body, file: s.named(m.file)}
	forwarded.origin = map[string]any{"type": "channel", "chat": from.show(), "message_id": m.id, "date": m.date.Unix()}
	if from.Type != "channel" {
		forwarded.origin = map[string]any{"type": "user", "sender_user": m.sender.user(), "date": m.date.Unix()}
	}
	c.log.Text, c.log.Marks = m.body.text, m.body.marks()
	to, refused := s.post(c, []*message{forwarded})
	if refused != nil {
		return outcome{}, refused
	}
	return outcome{result: forwarded.show(to), messages: []*message{forwarded}}, nil
}
