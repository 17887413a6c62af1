package telegram

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"time"
)

const (
	// deletable is how long a bot without the right to delete may delete its own messages.
	deletable  = 48 * time.Hour
	maxDeleted = 100 // messages of one call
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
	preview, refused := c.preview()
	if refused != nil {
		return outcome{}, refused
	}
	return s.edit(c, message{body: body, preview: preview}, false)
}

func (s *Server) editMessageCaption(c call) (outcome, *refusal) {
	body, refused := c.args.source("caption", "caption_entities").caption(c.note)
	if refused != nil {
		return outcome{}, refused
	}
	return s.edit(c, message{body: body}, true)
}

// edit replaces the text of a message. It drops what the call does not repeat: the look of the preview, the
// position of the caption, the buttons.
func (s *Server) edit(c call, wish message, caption bool) (outcome, *refusal) {
	c.log.Text, c.log.Marks = wish.body.text, wish.body.marks()
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
	case caption:
		wish.captionAbove = c.captionAbove(m.file.kind)
	}
	if m.body.text == wish.body.text && slices.Equal(m.body.entities, wish.body.entities) && bytes.Equal(m.markup, markup) &&
		m.preview == wish.preview && m.captionAbove == wish.captionAbove {
		return outcome{}, badRequest(notModified)
	}
	if refused := s.charge(c.bot, in, 1); refused != nil {
		return outcome{}, refused
	}
	m.body, m.preview, m.captionAbove, m.markup, m.buttons, m.edited = wish.body, wish.preview, wish.captionAbove, markup, buttons, true
	c.log.Edited = []string{strconv.FormatInt(m.id, 10)}
	return outcome{result: m.show(in)}, nil
}

func (s *Server) deleteMessage(c call) (outcome, *refusal) {
	in, m, refused := s.find(c.args.values["chat_id"], c.args.values["message_id"], "message to delete not found")
	if refused != nil {
		return outcome{}, refused
	}
	return s.remove(c, in, []*message{m})
}

func (s *Server) deleteMessages(c call) (outcome, *refusal) {
	var ids []int64
	given, err := c.args.object("message_ids", &ids)
	if !given || err != nil || len(ids) == 0 {
		return outcome{}, badRequest("message identifiers are not specified")
	}
	if len(ids) > maxDeleted {
		return outcome{}, badRequest("too many message identifiers specified")
	}
	in, refused := s.reach(c.args.values["chat_id"])
	if refused != nil {
		return outcome{}, refused
	}
	var found []*message
	for _, id := range ids {
		if m := in.messages[id]; m != nil { // missing ones are skipped
			found = append(found, m)
		}
	}
	return s.remove(c, in, found)
}

// remove deletes all messages or none. Without the right to delete, a bot deletes only its own messages,
// and only new ones.
func (s *Server) remove(c call, in *chat, messages []*message) (outcome, *refusal) {
	for _, m := range messages {
		if in.Access != AccessAdmin && (m.sender != c.bot || time.Since(m.date) > s.core.Pace.Of(deletable)) {
			return outcome{}, badRequest("message can't be deleted")
		}
	}
	for _, m := range messages {
		delete(in.messages, m.id)
		in.pinned = slices.DeleteFunc(in.pinned, func(id int64) bool { return id == m.id })
		c.log.Removed = append(c.log.Removed, strconv.FormatInt(m.id, 10))
	}
	return outcome{result: true}, nil
}

// mayPin returns a message after a check of the right to pin it.
func (s *Server) mayPin(c call, missing string) (*chat, *message, *refusal) {
	in, m, refused := s.find(c.args.values["chat_id"], c.args.values["message_id"], missing)
	if refused == nil && in.Access != AccessAdmin && in.Type != "private" {
		refused = badRequest("not enough rights to manage pinned messages in the chat")
	}
	return in, m, refused
}

func (s *Server) pinChatMessage(c call) (outcome, *refusal) {
	in, m, refused := s.mayPin(c, "message to pin not found")
	if refused != nil {
		return outcome{}, refused
	}
	if !slices.Contains(in.pinned, m.id) {
		in.pinned = append(in.pinned, m.id)
	}
	c.log.Pinned = []string{strconv.FormatInt(m.id, 10)}
	return outcome{result: true}, nil
}

// unpinChatMessage requires an id. The real server takes the newest pin if there is none.
func (s *Server) unpinChatMessage(c call) (outcome, *refusal) {
	in, m, refused := s.mayPin(c, "message to unpin not found")
	if refused != nil {
		return outcome{}, refused
	}
	in.pinned = slices.DeleteFunc(in.pinned, func(id int64) bool { return id == m.id })
	c.log.Unpinned = []string{strconv.FormatInt(m.id, 10)}
	return outcome{result: true}, nil
}

// Pinned returns the ids of the pinned messages of a chat, in the order in which they were pinned.
func (s *Server) Pinned(chatID int64) []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.chats[chatID]; c != nil {
		return slices.Clone(c.pinned)
	}
	return nil
}

// named returns the file of a forwarded message, with a new id after RenameForwarded.
func (s *Server) named(f *file) *file {
	if f == nil || !s.renameForwarded {
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
