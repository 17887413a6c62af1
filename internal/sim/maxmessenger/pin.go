package maxmessenger

// pinnable returns the chat of a call about pins. It must be a group or a channel in which the bot may
// write.
func (s *Server) pinnable(c call) (*chat, *refusal) {
	in, refused := s.byID(c.id)
	if refused == nil {
		refused = in.mayWrite()
	}
	if refused == nil && in.Type == "dialog" {
		refused = payload("Messages are pinned in chats and channels only")
	}
	return in, refused
}

func (s *Server) pinned(c call) (outcome, *refusal) {
	in, refused := s.pinnable(c)
	if refused != nil {
		return outcome{}, refused
	}
	if in.pinned == nil {
		return outcome{body: map[string]any{"message": nil}}, nil
	}
	return outcome{body: map[string]any{"message": s.show(in.pinned)}}, nil
}

// pin pins a message in place of the pinned one.
func (s *Server) pin(c call) (outcome, *refusal) {
	in, refused := s.pinnable(c)
	if refused != nil {
		return outcome{}, refused
	}
	var body struct {
		MessageID string `json:"message_id"`
		Notify    *bool  `json:"notify"`
	}
	if refused := strict(c.body, &body); refused != nil {
		return outcome{}, refused
	}
	m, refused := s.find(body.MessageID)
	if refused != nil {
		return outcome{}, refused
	}
	if m.chat != in {
		return outcome{}, notFound("Message " + m.mid + " not found in the chat")
	}
	if in.pinned != nil {
		c.log.Unpinned = []string{in.pinned.mid}
	}
	in.pinned = m
	c.log.Pinned = []string{m.mid}
	return outcome{body: success}, nil
}

// unpin removes the pin, of any message.
func (s *Server) unpin(c call) (outcome, *refusal) {
	in, refused := s.pinnable(c)
	if refused != nil {
		return outcome{}, refused
	}
	if in.pinned != nil {
		c.log.Unpinned = []string{in.pinned.mid}
	}
	in.pinned = nil
	return outcome{body: success}, nil
}

// Pinned returns the id of the pinned message of a chat; "" if there is none.
func (s *Server) Pinned(chatID int64) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.chats[chatID]; c != nil && c.pinned != nil {
		return c.pinned.mid
	}
	return ""
}
