package maxmessenger

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"autopost/internal/sim"
)

const maxBody = 1 << 20 // bytes of a JSON body

// refusal is an error answer.
type refusal struct {
	status        int
	code, message string
}

// payload is the error for an invalid request.
func payload(message string) *refusal {
	return &refusal{status: http.StatusBadRequest, code: "proto.payload", message: message}
}

func notFound(message string) *refusal {
	return &refusal{status: http.StatusNotFound, code: "not.found", message: message}
}

// call is a parsed request.
type call struct {
	bot   *bot
	query url.Values
	body  []byte
	// id is the {id} of the path.
	id string
	// base is the URL of the server as the caller sees it.
	base string
	log  *sim.Entry
	note func(string)
}

// outcome is a successful call.
type outcome struct {
	body any
	mid  string
}

type route struct {
	name   string
	params []string
	run    func(*Server, call) (outcome, *refusal)
}

// routes maps a method and a path with * for the id.
var routes = map[string]route{
	"GET /me":                 {"GET /me", nil, (*Server).me},
	"GET /chats/*":            {"GET /chats/{id}", nil, (*Server).getChat},
	"GET /chats/*/members/me": {"GET /chats/{id}/members/me", nil, (*Server).membership},
	"GET /chats/*/pin":        {"GET /chats/{id}/pin", nil, (*Server).pinned},
	"PUT /chats/*/pin":        {"PUT /chats/{id}/pin", nil, (*Server).pin},
	"DELETE /chats/*/pin":     {"DELETE /chats/{id}/pin", nil, (*Server).unpin},
	"POST /messages":          {"POST /messages", []string{"chat_id", "user_id", "disable_link_preview"}, (*Server).send},
	"GET /messages":           {"GET /messages", []string{"chat_id", "message_ids", "from", "to", "before", "after", "count"}, (*Server).list},
	"PUT /messages":           {"PUT /messages", []string{"message_id"}, (*Server).edit},
	"DELETE /messages":        {"DELETE /messages", []string{"message_id"}, (*Server).remove},
	"GET /messages/*":         {"GET /messages/{mid}", nil, (*Server).get},
	"POST /answers":           {"POST /answers", []string{"callback_id", "disable_link_preview"}, (*Server).answerPress},
	"GET /subscriptions":      {"GET /subscriptions", nil, (*Server).subscriptions},
	"POST /subscriptions":     {"POST /subscriptions", nil, (*Server).subscribe},
	"DELETE /subscriptions":   {"DELETE /subscriptions", []string{"url"}, (*Server).unsubscribe},
	"GET /updates":            {"GET /updates", []string{"limit", "timeout", "marker", "types"}, (*Server).updates},
	"POST /uploads":           {"POST /uploads", []string{"type"}, (*Server).openSlot},
}

// match returns the route of a request and the id in its path. It reports whether the path is known, with
// any method.
func match(method, path string) (route, string, bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	id := ""
	if len(parts) > 1 && (parts[0] == "chats" || parts[0] == "messages") {
		id, parts[1] = parts[1], "*"
	}
	pattern := "/" + strings.Join(parts, "/")
	if r, ok := routes[method+" "+pattern]; ok {
		return r, id, true
	}
	known := false
	for key := range routes {
		known = known || strings.HasSuffix(key, " "+pattern)
	}
	return route{name: method + " " + pattern}, id, known
}

// ServeHTTP answers one call or takes one upload.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/upload/") {
		s.serveUpload(w, r)
		return
	}
	to, id, known := match(r.Method, r.URL.Path)
	token := r.Header.Get("Authorization")
	c := call{query: r.URL.Query(), id: id, base: base(r) + s.opts.Prefix}
	entry := sim.Entry{Platform: Platform, Credential: sim.CredentialHash(token), Method: to.name}
	s.describeChat(&entry, c)
	x := s.core.Begin(w, r, entry)
	if x.Cut() {
		return
	}
	body, err := io.ReadAll(io.LimitReader(x.Body(), maxBody+1))
	c.body, c.log, c.note = body, x.Entry(), x.Note
	s.describe(x.Entry(), to.name, body)
	x.Arrive()
	x.Answer(func() sim.Reply {
		switch {
		case err != nil:
			return refuse(*payload("Cannot read the request"))
		case len(body) > maxBody:
			return refuse(refusal{status: http.StatusRequestEntityTooLarge, code: "proto.payload", message: "Request is too large"})
		case !known:
			return refuse(*notFound("Path " + r.URL.Path + " is not recognized"))
		case to.run == nil:
			return refuse(refusal{status: http.StatusMethodNotAllowed, code: "method.not.allowed", message: "Method not allowed"})
		}
		return s.answer(token, to, c)
	}, refuseFault)
}

func (s *Server) answer(token string, to route, c call) sim.Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.query.Has("access_token") {
		c.note("the query parameter access_token is no longer taken")
	}
	if c.bot = s.bot(token); c.bot == nil {
		return refuse(refusal{status: http.StatusUnauthorized, code: "verify.token", message: "Invalid access_token"})
	}
	for name := range c.query {
		if name != "v" && !slices.Contains(to.params, name) {
			c.note("unknown parameter " + name)
		}
	}
	if s.buckets.Take(1, sim.Claim{Key: "bot " + token, Rate: s.limits.Token}) > 0 {
		return refuse(*tooManyRequests())
	}
	done, refused := to.run(s, c)
	if refused != nil {
		return refuse(*refused)
	}
	reply := sim.Reply{Status: http.StatusOK, ContentType: "application/json;charset=utf-8", Body: encode(done.body), Accepted: true}
	if done.mid != "" {
		reply.MessageIDs = []string{done.mid}
	}
	return reply
}

// base returns the scheme and host of a request.
func base(r *http.Request) string {
	if r.TLS != nil {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// describeChat writes the chat of a call into its log entry, as far as the URL names it.
func (s *Server) describeChat(e *sim.Entry, c call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.Chat = c.query.Get("chat_id")
	if e.Chat == "" && strings.Contains(e.Method, "/chats/") {
		e.Chat = c.id
	}
	var found *chat
	if id, err := strconv.ParseInt(e.Chat, 10, 64); err == nil {
		found = s.chat(id)
	} else if id, err := strconv.ParseInt(c.query.Get("user_id"), 10, 64); err == nil {
		found = s.dialog(id)
	} else if m := s.messages[c.query.Get("message_id")]; m != nil {
		found = m.chat
	}
	if found != nil {
		e.Chat, e.ChatTitle = strconv.FormatInt(found.ID, 10), found.Title
	}
}

// describe writes the text of a message into its log entry, before the request is checked.
func (s *Server) describe(e *sim.Entry, method string, body []byte) {
	if method != "POST /messages" && method != "PUT /messages" {
		return
	}
	if method == "POST /messages" {
		e.Items = 1
	}
	var said struct {
		Text string `json:"text"`
	}
	// A malformed body is rejected later.
	if json.Unmarshal(body, &said) == nil && said.Text != "" {
		e.Text, e.TextDigest = said.Text, sim.Digest([]byte(said.Text))
	}
}

func refuse(r refusal) sim.Reply {
	return sim.Reply{
		Status: r.status, ContentType: "application/json;charset=utf-8",
		Body: encode(map[string]any{"code": r.code, "message": r.message}), Reason: r.code + ": " + r.message,
	}
}

func tooManyRequests() *refusal {
	return &refusal{status: http.StatusTooManyRequests, code: "too.many.requests", message: "Too many requests"}
}

// refuseFault returns a scripted error. Its default key and text are the usual ones of its status. MAX does
// not state a wait unless the rule does.
func refuseFault(f sim.Fault) sim.Reply {
	usual := map[int]refusal{
		http.StatusBadRequest:          {code: "proto.payload", message: "Invalid request"},
		http.StatusUnauthorized:        {code: "verify.token", message: "Invalid access_token"},
		http.StatusForbidden:           {code: "chat.denied", message: "chat.send.msg.no.permission.because.not.admin"},
		http.StatusNotFound:            {code: "chat.not.found", message: "Chat not found"},
		http.StatusTooManyRequests:     *tooManyRequests(),
		http.StatusInternalServerError: {code: "internal.error", message: "Internal error"},
		http.StatusServiceUnavailable:  {code: "service.unavailable", message: "Service unavailable"},
	}[f.Status]
	r := refusal{status: f.Status, code: f.Code, message: f.Description}
	if r.code == "" {
		r.code = usual.code
	}
	if r.message == "" {
		r.message = usual.message
	}
	reply := refuse(r)
	if f.RetryAfter > 0 {
		reply.RetryAfter = f.RetryAfter
		reply.Header = http.Header{"Retry-After": {strconv.Itoa(f.RetryAfter)}}
	}
	return reply
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		// All values are maps, slices, strings and numbers.
		panic("max simulator: " + err.Error())
	}
	return b
}
