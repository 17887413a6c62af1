package telegram

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"time"

	"autopost/internal/sim"
)

// message is a stored message.
type message struct {
	id       int64
	date     time.Time
	edited   bool
	body     formatted
	file     *file
	groupID  string
	threadID int64
	markup   json.RawMessage
	buttons  [][]sim.Button
	origin   map[string]any
	sender   *bot
	preview  LinkPreview
	// captionAbove puts the caption above the media.
	captionAbove bool
	// protected messages cannot be forwarded.
	protected bool
}

func (m *message) public(chatID int64) Message {
	out := Message{
		ChatID: chatID, ID: m.id, Date: m.date, Text: m.body.text, Entities: m.body.entities,
		MediaGroupID: m.groupID, ThreadID: m.threadID, Preview: m.preview, CaptionAbove: m.captionAbove, Buttons: m.buttons,
	}
	if m.file != nil {
		media := m.file.media
		out.Media, out.FileID, out.Video = &media, m.file.id, m.file.video
	}
	return out
}

// show returns the message in the form of the API.
func (m *message) show(c *chat) map[string]any {
	out := map[string]any{"message_id": m.id, "chat": c.show(), "date": m.date.Unix()}
	if c.Type == "channel" {
		out["sender_chat"] = c.show()
	} else {
		out["from"] = m.sender.user()
	}
	textName, entitiesName := "text", "entities"
	if m.file != nil {
		textName, entitiesName = "caption", "caption_entities"
		out[m.file.kind] = m.file.describe()
		if m.file.kind == "animation" {
			out["document"] = out["animation"]
		}
	}
	if m.body.text != "" {
		out[textName] = m.body.text
	}
	if len(m.body.entities) > 0 {
		out[entitiesName] = m.body.entities
	}
	if m.groupID != "" {
		out["media_group_id"] = m.groupID
	}
	if m.threadID != 0 {
		out["message_thread_id"], out["is_topic_message"] = m.threadID, true
	}
	if m.markup != nil {
		out["reply_markup"] = m.markup
	}
	if m.origin != nil {
		out["forward_origin"] = m.origin
	}
	if m.preview != (LinkPreview{}) {
		out["link_preview_options"] = m.preview
	}
	if m.captionAbove {
		out["show_caption_above_media"] = true
	}
	if m.edited {
		out["edit_date"] = m.date.Unix()
	}
	if m.protected {
		out["has_protected_content"] = true
	}
	return out
}

// reach returns the chat of a chat_id if the bot has access to it.
func (s *Server) reach(id string) (*chat, *refusal) {
	if id == "" {
		return nil, badRequest("chat_id is empty")
	}
	to := s.chat(id)
	switch {
	case to == nil:
		return nil, badRequest("chat not found")
	case to.migratedTo != 0:
		r := badRequest("group chat was upgraded to a supergroup chat")
		r.migrateTo = to.migratedTo
		return nil, r
	case to.Type == "private" && (to.Access == AccessKicked || to.Access == AccessNone):
		return nil, forbidden("bot was blocked by the user")
	case to.Access == AccessKicked:
		return nil, forbidden("bot was kicked from the " + to.Type + " chat")
	case to.Access == AccessNone:
		return nil, forbidden("bot is not a member of the " + to.Type + " chat")
	}
	return to, nil
}

var nouns = map[string]string{
	"": "text messages", "photo": "photos", "video": "videos", "animation": "animations", "audio": "music", "document": "documents",
}

// mayPost checks the right to send a message of a kind, "" for text.
func (c *chat) mayPost(kind string) *refusal {
	switch {
	case c.Type == "private" || c.Access == AccessAdmin:
		return nil
	case c.Type == "channel":
		return badRequest("need administrator rights in the channel chat")
	case c.Access == AccessReadOnly:
		return badRequest("not enough rights to send " + nouns[kind] + " to the chat")
	}
	return nil
}

// charge counts messages against the rate limits of the bot and the chat.
func (s *Server) charge(b *bot, to *chat, messages int) *refusal {
	bot, chat := strconv.FormatInt(b.id, 10), strconv.FormatInt(b.id, 10)+" "+strconv.FormatInt(to.ID, 10)
	claims := []sim.Claim{{Key: "bot " + bot, Rate: s.limits.Token}, {Key: "chat " + chat, Rate: s.limits.Chat}}
	if to.Type == "group" || to.Type == "supergroup" {
		claims = append(claims, sim.Claim{Key: "group " + chat, Rate: s.limits.Group})
	}
	wait := s.buckets.Take(messages, claims...)
	if wait <= 0 {
		return nil
	}
	return tooManyRequests(int(math.Ceil(wait.Seconds())))
}

// post stores messages in a chat, all or none.
func (s *Server) post(c call, messages []*message) (*chat, *refusal) {
	to, refused := s.reach(c.args.values["chat_id"])
	if refused != nil {
		return nil, refused
	}
	for _, m := range messages {
		kind := ""
		if m.file != nil {
			kind = m.file.kind
		}
		if refused := to.mayPost(kind); refused != nil {
			return nil, refused
		}
	}
	thread, refused := to.thread(c.args.values["message_thread_id"])
	if refused != nil {
		return nil, refused
	}
	if refused := s.charge(c.bot, to, len(messages)); refused != nil {
		return nil, refused
	}
	now := time.Now()
	for _, m := range messages {
		to.lastID++
		m.id, m.date, m.threadID, m.sender = to.lastID, now, thread, c.bot
		m.protected = to.Protected || c.args.values["protect_content"] == "true"
		to.messages[m.id] = m
		delete(to.messages, m.id-remembered)
	}
	return to, nil
}

// thread parses a message_thread_id; 0 if it is absent.
func (c *chat) thread(param string) (int64, *refusal) {
	if param == "" || param == "0" {
		return 0, nil
	}
	id, err := strconv.ParseInt(param, 10, 64)
	if err != nil || (!c.anyThread && !slices.Contains(c.Threads, id)) {
		return 0, badRequest("message thread not found")
	}
	return id, nil
}

// answers checks reply_parameters. A missing message is an error unless the call allows it.
func (s *Server) answers(c call) *refusal {
	var reply struct {
		MessageID int64 `json:"message_id"`
		Anyway    bool  `json:"allow_sending_without_reply"`
	}
	if given, err := c.args.object("reply_parameters", &reply); err != nil {
		return badRequest("can't parse reply parameters JSON object")
	} else if !given {
		return nil
	}
	if to := s.chat(c.args.values["chat_id"]); to != nil && to.messages[reply.MessageID] != nil {
		c.log.ReplyTo = strconv.FormatInt(reply.MessageID, 10)
	} else if !reply.Anyway {
		return badRequest("message to be replied not found")
	}
	return nil
}

// badges returns the options of a call for the log.
func (c call) badges() []string {
	var out []string
	for _, option := range []struct{ name, badge string }{
		{"disable_notification", "silent"}, {"protect_content", "protected"}, {"has_spoiler", "spoiler"}, {"show_caption_above_media", "caption above"},
	} {
		if c.args.values[option.name] == "true" {
			out = append(out, option.badge)
		}
	}
	return out
}

// preview parses link_preview_options. Without a URL the server drops the wished size.
func (c call) preview() (LinkPreview, *refusal) {
	var wish LinkPreview
	if _, err := c.args.object("link_preview_options", &wish); err != nil {
		return LinkPreview{}, badRequest("can't parse link preview options JSON object")
	}
	if wish.PreferSmall && wish.PreferLarge {
		c.note("a preview cannot be small and large")
	}
	if wish.URL == "" && (wish.PreferSmall || wish.PreferLarge) {
		c.note("the size of a preview is dropped: it has no url")
		wish.PreferSmall, wish.PreferLarge = false, false
	}
	for badge, set := range map[string]bool{
		"no preview": wish.IsDisabled, "small preview": wish.PreferSmall, "large preview": wish.PreferLarge, "preview above": wish.Above,
	} {
		if set {
			c.log.Badges = append(c.log.Badges, badge)
		}
	}
	slices.Sort(c.log.Badges)
	return wish, nil
}

func (s *Server) sendMessage(c call) (outcome, *refusal) {
	body, refused := c.args.source("text", "entities").message(c.note)
	if refused != nil {
		return outcome{}, refused
	}
	c.log.Text, c.log.Marks = body.text, body.marks()
	markup, buttons, refused := c.args.keyboard()
	if refused != nil {
		return outcome{}, refused
	}
	c.log.Buttons = buttons
	preview, refused := c.preview()
	if refused != nil {
		return outcome{}, refused
	}
	if refused := s.answers(c); refused != nil {
		return outcome{}, refused
	}
	m := &message{body: body, markup: markup, buttons: buttons, preview: preview}
	to, refused := s.post(c, []*message{m})
	if refused != nil {
		return outcome{}, refused
	}
	return outcome{result: m.show(to), messages: []*message{m}}, nil
}

// captionAbove reports whether a medium of the kind shows its caption above it.
func (c call) captionAbove(kind string) bool {
	return visual[kind] && c.args.values["show_caption_above_media"] == "true"
}

// sendOne returns the method that sends one medium of a kind.
func sendOne(kind string) func(*Server, call) (outcome, *refusal) {
	return func(s *Server, c call) (outcome, *refusal) {
		caption, refused := c.args.source("caption", "caption_entities").caption(c.note)
		if refused != nil {
			return outcome{}, refused
		}
		c.log.Text, c.log.Marks = caption.text, caption.marks()
		markup, buttons, refused := c.args.keyboard()
		if refused != nil {
			return outcome{}, refused
		}
		c.log.Buttons = buttons
		f, refused := s.input(c, kind, kind, c.args.values[kind], badRequest("there is no "+kind+" in the request"))
		if refused != nil {
			return outcome{}, refused
		}
		f.measure(c, c.args.video())
		c.log.Media = []sim.Media{f.media}
		if refused := s.answers(c); refused != nil {
			return outcome{}, refused
		}
		m := &message{body: caption, file: f, markup: markup, captionAbove: c.captionAbove(kind)}
		to, refused := s.post(c, []*message{m})
		if refused != nil {
			return outcome{}, refused
		}
		shown := m.show(to)
		if s.scheduleVideos && kind == "video" {
			shown["message_id"] = 0
		}
		return outcome{result: shown, messages: []*message{m}}, nil
	}
}
