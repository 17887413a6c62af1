package telegram

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"autopost/internal/sim"
)

const albumLimit = 10

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
	origin   map[string]any
	sender   *bot
	// protected messages cannot be forwarded.
	protected bool
}

func (m *message) public(chatID int64) Message {
	out := Message{
		ChatID: chatID, ID: m.id, Date: m.date, Text: m.body.text, Entities: m.body.entities,
		MediaGroupID: m.groupID, ThreadID: m.threadID,
	}
	if m.file != nil {
		media := m.file.media
		out.Media, out.FileID = &media, m.file.id
	}
	return out
}

// show is the message as the API answers it.
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
	if m.edited {
		out["edit_date"] = m.date.Unix()
	}
	if m.protected {
		out["has_protected_content"] = true
	}
	return out
}

// reach finds the chat of chat_id, if the bot can reach it at all.
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

// mayPost checks the right to send a message of that kind ("" for text).
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

// charge takes the messages from the rate limits of bot and chat.
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

// answers reads which message is answered; one that is gone is an error unless the bot said that it may be.
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

// badges are what a reader, or the log's, sees of a call's options.
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

// preview checks how a link's preview is to look.
func (c call) preview() *refusal {
	var options struct {
		IsDisabled  bool   `json:"is_disabled"`
		URL         string `json:"url"`
		PreferSmall bool   `json:"prefer_small_media"`
		PreferLarge bool   `json:"prefer_large_media"`
		Above       bool   `json:"show_above_text"`
	}
	if _, err := c.args.object("link_preview_options", &options); err != nil {
		return badRequest("can't parse link preview options JSON object")
	}
	if options.PreferSmall && options.PreferLarge {
		c.note("a preview cannot be small and large")
	}
	for badge, set := range map[string]bool{
		"no preview": options.IsDisabled, "small preview": options.PreferSmall, "large preview": options.PreferLarge, "preview above": options.Above,
	} {
		if set {
			c.log.Badges = append(c.log.Badges, badge)
		}
	}
	slices.Sort(c.log.Badges)
	return nil
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
	if refused := c.preview(); refused != nil {
		return outcome{}, refused
	}
	if refused := s.answers(c); refused != nil {
		return outcome{}, refused
	}
	m := &message{body: body, markup: markup}
	to, refused := s.post(c, []*message{m})
	if refused != nil {
		return outcome{}, refused
	}
	return outcome{result: m.show(to), messages: []*message{m}}, nil
}

// sendOne makes the method that sends one medium of a kind.
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
		c.log.Media = []sim.Media{f.media}
		m := &message{body: caption, file: f, markup: markup}
		to, refused := s.post(c, []*message{m})
		if refused != nil {
			return outcome{}, refused
		}
		return outcome{result: m.show(to), messages: []*message{m}}, nil
	}
}

// inputMedia is one item of an album.
type inputMedia struct {
	Type      string   `json:"type"`
	Media     string   `json:"media"`
	Caption   string   `json:"caption"`
	ParseMode string   `json:"parse_mode"`
	Entities  []Entity `json:"caption_entities"`
	Spoiler   bool     `json:"has_spoiler"`
	Above     bool     `json:"show_caption_above_media"`
}

func (s *Server) sendMediaGroup(c call) (outcome, *refusal) {
	var items []inputMedia
	given, err := c.args.object("media", &items)
	switch {
	case err != nil:
		return outcome{}, badRequest("can't parse media JSON object")
	case !given:
		return outcome{}, badRequest("parameter \"media\" is required")
	case len(items) == 0:
		return outcome{}, badRequest("there are no messages to send")
	case len(items) > albumLimit:
		return outcome{}, badRequest("too many messages to send as an album")
	case len(items) == 1:
		c.note("an album of one item; it is sent as a plain message")
	}
	if c.args.values["reply_markup"] != "" {
		c.note("reply_markup is ignored for albums")
	}
	if refused := albumMix(items); refused != nil {
		return outcome{}, refused
	}
	messages, refused := s.albumMessages(c, items)
	if refused != nil {
		return outcome{}, refused
	}
	to, refused := s.post(c, messages)
	if refused != nil {
		return outcome{}, refused
	}
	var shown []any
	for _, m := range messages {
		shown = append(shown, m.show(to))
	}
	return outcome{result: shown, messages: messages}, nil
}

// albumMix checks which kinds stand together: documents and audio files only among themselves.
func albumMix(items []inputMedia) *refusal {
	for _, item := range items {
		switch item.Type {
		case "photo", "video", "document", "audio", "live_photo":
		case "animation":
			return badRequest("can't use the media of the specified type in the album")
		default:
			return badRequest("can't parse InputMedia: type \"" + item.Type + "\" is unsupported")
		}
		if item.Type != items[0].Type {
			for _, alone := range []string{"document", "audio"} {
				if item.Type == alone || items[0].Type == alone {
					return badRequest(alone + " can't be mixed with other media types")
				}
			}
		}
	}
	return nil
}

func (s *Server) albumMessages(c call, items []inputMedia) ([]*message, *refusal) {
	groupID := ""
	if len(items) > 1 {
		s.serial++
		groupID = strconv.FormatUint(14_000_000_000_000_000+s.serial, 10)
	}
	var messages []*message
	c.log.Media = nil
	for i, item := range items {
		src := source{text: item.Caption, parseMode: item.ParseMode, entities: item.Entities}
		caption, refused := src.caption(c.note)
		if refused != nil {
			return nil, refused
		}
		if item.Media == "" {
			return nil, badRequest("can't parse InputMedia: media not found")
		}
		f, refused := s.input(c, item.Type, "", item.Media, badRequest("can't parse InputMedia: media not found"))
		if refused != nil {
			return nil, refused
		}
		if item.Spoiler {
			c.log.Badges = append(c.log.Badges, fmt.Sprint("spoiler ", i+1))
		}
		if item.Above {
			c.log.Badges = append(c.log.Badges, fmt.Sprint("caption above ", i+1))
		}
		if (item.Spoiler || item.Above) && item.Type != "photo" && item.Type != "video" {
			c.note("a " + item.Type + " has no spoiler, and its caption stands below")
		}
		shown := f.media
		if i == 0 {
			c.log.Text, c.log.Marks = caption.text, caption.marks()
		} else {
			shown.Caption = caption.text
		}
		c.log.Media = append(c.log.Media, shown)
		messages = append(messages, &message{body: caption, file: f, groupID: groupID})
	}
	return messages, nil
}
