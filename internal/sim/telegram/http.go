package telegram

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"autopost/internal/sim"
)

// refusal is an error answer: its error_code, description and parameters.
type refusal struct {
	code        int
	description string
	retryAfter  int
	migrateTo   int64
}

func badRequest(description string) *refusal {
	return &refusal{code: http.StatusBadRequest, description: "Bad Request: " + description}
}

func forbidden(description string) *refusal {
	return &refusal{code: http.StatusForbidden, description: "Forbidden: " + description}
}

// outcome is a successful call.
type outcome struct {
	result      any
	description string
	// messages are the new messages.
	messages []*message
}

// call is a parsed request.
type call struct {
	bot  *bot
	args arguments
	log  *sim.Entry
	note func(string)
}

type method struct {
	name string
	run  func(*Server, call) (outcome, *refusal)
	// params are the known parameters. Those of all sends are added if sends is set.
	params []string
	sends  bool
}

var commonSendParams = strings.Fields(`business_connection_id chat_id message_thread_id direct_messages_topic_id
	disable_notification protect_content allow_paid_broadcast message_effect_id suggested_post_parameters
	reply_parameters reply_markup parse_mode`)

func methods() map[string]method {
	sending := func(name, params string, run func(*Server, call) (outcome, *refusal)) method {
		return method{name: name, run: run, params: strings.Fields(params), sends: true}
	}
	plain := func(name, params string, run func(*Server, call) (outcome, *refusal)) method {
		return method{name: name, run: run, params: strings.Fields(params)}
	}
	list := []method{
		sending("sendMessage", "text entities link_preview_options", (*Server).sendMessage),
		sending("sendPhoto", "photo caption caption_entities show_caption_above_media has_spoiler", sendOne("photo")),
		sending("sendVideo", "video duration width height thumbnail cover start_timestamp caption caption_entities show_caption_above_media has_spoiler supports_streaming", sendOne("video")),
		sending("sendAnimation", "animation duration width height thumbnail caption caption_entities show_caption_above_media has_spoiler", sendOne("animation")),
		sending("sendAudio", "audio caption caption_entities duration performer title thumbnail", sendOne("audio")),
		sending("sendDocument", "document thumbnail caption caption_entities disable_content_type_detection", sendOne("document")),
		sending("sendMediaGroup", "media", (*Server).sendMediaGroup),
		sending("forwardMessage", "from_chat_id message_id video_start_timestamp", (*Server).forwardMessage),
		plain("editMessageText", "business_connection_id chat_id message_id inline_message_id text parse_mode entities link_preview_options reply_markup", (*Server).editMessageText),
		plain("editMessageCaption", "business_connection_id chat_id message_id inline_message_id caption parse_mode caption_entities show_caption_above_media reply_markup", (*Server).editMessageCaption),
		plain("deleteMessage", "chat_id message_id", (*Server).deleteMessage),
		plain("deleteMessages", "chat_id message_ids", (*Server).deleteMessages),
		plain("answerCallbackQuery", "callback_query_id text show_alert url cache_time", (*Server).answerCallbackQuery),
		plain("pinChatMessage", "business_connection_id chat_id message_id disable_notification", (*Server).pinChatMessage),
		plain("unpinChatMessage", "business_connection_id chat_id message_id", (*Server).unpinChatMessage),
		plain("getMe", "", (*Server).getMe),
		plain("getChat", "chat_id", (*Server).getChat),
		plain("getChatMember", "chat_id user_id", (*Server).getChatMember),
		plain("setWebhook", "url certificate ip_address max_connections allowed_updates drop_pending_updates secret_token", (*Server).setWebhook),
		plain("deleteWebhook", "drop_pending_updates", (*Server).deleteWebhook),
		plain("getWebhookInfo", "", (*Server).getWebhookInfo),
		plain("getUpdates", "offset limit timeout allowed_updates", (*Server).getUpdates),
	}
	table := map[string]method{}
	for _, m := range list {
		if m.sends {
			m.params = append(m.params, commonSendParams...)
		}
		table[strings.ToLower(m.name)] = m
	}
	return table
}

var methodTable = methods()

// ServeHTTP answers one call.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rest, isBot := strings.CutPrefix(r.URL.Path, "/bot")
	token, name, hasMethod := strings.Cut(rest, "/")
	m, known := methodTable[strings.ToLower(name)]
	if known {
		name = m.name
	}
	entry := sim.Entry{Platform: Platform, Method: name}
	if isBot {
		entry.Credential = sim.CredentialHash(token)
	}
	x := s.core.Begin(w, r, entry)
	if x.Cut() {
		return
	}
	args, broken := readArguments(r, x)
	s.describe(x, args)
	x.Arrive()
	x.Answer(func() sim.Reply {
		switch {
		case !isBot || !hasMethod:
			return refuse(refusal{code: http.StatusNotFound, description: "Not Found"})
		case broken != nil:
			return refuse(*broken)
		}
		return s.answer(token, m, call{args: args, log: x.Entry(), note: x.Note})
	}, refuseFault)
}

func (s *Server) answer(token string, m method, c call) sim.Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !tokenForm.MatchString(token) {
		return refuse(refusal{code: http.StatusUnauthorized, description: "Unauthorized: invalid token specified"})
	}
	if c.bot = s.bot(token); c.bot == nil {
		return refuse(refusal{code: http.StatusUnauthorized, description: "Unauthorized"})
	}
	if m.run == nil {
		return refuse(refusal{code: http.StatusNotFound, description: "Not Found: method not found"})
	}
	for name := range c.args.values {
		if !slices.Contains(m.params, name) {
			c.note("unknown parameter " + name)
		}
	}
	c.log.Badges = c.badges()
	done, refused := m.run(s, c)
	if refused != nil {
		return refuse(*refused)
	}
	body := map[string]any{"ok": true, "result": done.result}
	if done.description != "" {
		body["description"] = done.description
	}
	reply := sim.Reply{Status: http.StatusOK, ContentType: "application/json", Body: encode(body), Accepted: true}
	for _, sent := range done.messages {
		reply.MessageIDs = append(reply.MessageIDs, strconv.FormatInt(sent.id, 10))
	}
	return reply
}

// describe writes the chat, the text and the media of a request into its log entry, before the request is
// checked.
func (s *Server) describe(x *sim.Exchange, args arguments) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := x.Entry()
	e.Chat = args.values["chat_id"]
	if c := s.chat(e.Chat); c != nil {
		e.Chat, e.ChatTitle = strconv.FormatInt(c.ID, 10), c.Title
	}
	for _, name := range []string{"text", "caption"} {
		if text := args.values[name]; text != "" {
			e.Text, e.TextDigest = text, sim.Digest([]byte(text))
		}
	}
	if strings.HasPrefix(e.Method, "send") || e.Method == "forwardMessage" {
		e.Items = 1
	}
	var album []struct {
		Caption string `json:"caption"`
	}
	// A malformed album is rejected later.
	if json.Unmarshal([]byte(args.values["media"]), &album) == nil && len(album) > 0 {
		e.Items = len(album)
		if album[0].Caption != "" {
			e.Text, e.TextDigest = album[0].Caption, sim.Digest([]byte(album[0].Caption))
		}
	}
	e.Media = args.describedUploads()
}

func refuse(r refusal) sim.Reply {
	body := map[string]any{"ok": false, "error_code": r.code, "description": r.description}
	parameters := map[string]any{}
	header := http.Header{}
	if r.retryAfter > 0 {
		parameters["retry_after"] = r.retryAfter
		header.Set("Retry-After", strconv.Itoa(r.retryAfter))
	}
	if r.migrateTo != 0 {
		parameters["migrate_to_chat_id"] = r.migrateTo
	}
	if len(parameters) > 0 {
		body["parameters"] = parameters
	}
	return sim.Reply{
		Status: r.code, ContentType: "application/json", Header: header, Body: encode(body),
		RetryAfter: r.retryAfter, Reason: r.description,
	}
}

// refuseFault returns a scripted error. Its default text is the usual one of its status.
func refuseFault(f sim.Fault) sim.Reply {
	r := refusal{code: f.Status, description: f.Description, retryAfter: f.RetryAfter, migrateTo: f.MigrateTo}
	if r.description == "" {
		switch {
		case f.MigrateTo != 0:
			r.description = "Bad Request: group chat was upgraded to a supergroup chat"
		case f.Status == http.StatusTooManyRequests:
			r.retryAfter = max(1, r.retryAfter)
			r.description = tooManyRequests(r.retryAfter).description
		case f.Status == http.StatusForbidden:
			r.description = "Forbidden: bot was kicked from the channel chat"
		default:
			r.description = http.StatusText(f.Status)
		}
	}
	return refuse(r)
}

func tooManyRequests(seconds int) *refusal {
	return &refusal{
		code:        http.StatusTooManyRequests,
		description: "Too Many Requests: retry after " + strconv.Itoa(seconds),
		retryAfter:  seconds,
	}
}

// encode returns JSON without escapes for < > &, as the real server.
func encode(v any) []byte {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		// All values are maps, slices, strings and numbers.
		panic("telegram simulator: " + err.Error())
	}
	return []byte(strings.TrimSuffix(b.String(), "\n"))
}
