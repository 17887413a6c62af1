package twitter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"autopost/internal/sim"
)

const maxBody = 8 << 20 // bytes; the largest is a chunk in base64

// call is a parsed request.
type call struct {
	name  string
	user  *user
	app   *app
	r     *http.Request
	query url.Values
	body  []byte
	// id is the {id} of the path.
	id string
	// header has the headers of the answer.
	header http.Header
	log    *sim.Entry
	note   func(string)
}

// outcome is the answer of a successful call.
type outcome struct {
	status int
	body   any
	id     string // of the created post
}

type route struct {
	params []string
	scopes []string
	writes bool
	run    func(*Server, *call) (outcome, *problem)
}

var (
	readScopes  = []string{"tweet.read", "users.read"}
	writeScopes = []string{"tweet.read", "tweet.write", "users.read"}
	mediaScopes = []string{"media.write"}
)

// routes are the calls by method and path.
var routes = map[string]route{
	"GET /2/users/me":                    {[]string{"user.fields"}, readScopes, false, (*Server).me},
	"GET /2/users/{id}/tweets":           {timelineParams, readScopes, false, (*Server).timeline},
	"POST /2/tweets":                     {nil, writeScopes, true, (*Server).create},
	"GET /2/tweets/{id}":                 {[]string{newFields, oldFields, expansions, "media.fields", "user.fields", "poll.fields", "place.fields"}, readScopes, false, (*Server).get},
	"DELETE /2/tweets/{id}":              {nil, writeScopes, true, (*Server).remove},
	"POST /2/media/upload":               {nil, mediaScopes, true, (*Server).simpleUpload},
	"GET /2/media/upload":                {[]string{"command", "media_id"}, mediaScopes, false, (*Server).uploadStatus},
	"POST /2/media/upload/initialize":    {nil, mediaScopes, true, (*Server).initialize},
	"POST /2/media/upload/{id}/append":   {nil, mediaScopes, true, (*Server).appendChunk},
	"POST /2/media/upload/{id}/finalize": {nil, mediaScopes, true, (*Server).finalize},
	"POST /2/media/metadata":             {nil, mediaScopes, true, (*Server).metadata},
}

// match returns the name of a request's call and the id in its path.
func match(method, path string) (name, id string) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	for i, part := range parts {
		if digits.MatchString(part) && i > 1 {
			id, parts[i] = part, "{id}"
		}
	}
	return method + " /" + strings.Join(parts, "/"), id
}

func knownPath(name string) bool {
	_, path, _ := strings.Cut(name, " ")
	for key := range routes {
		if strings.HasSuffix(key, " "+path) {
			return true
		}
	}
	return false
}

// ServeHTTP answers a call.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, id := match(r.Method, r.URL.Path)
	credential := presented(r)
	entry := sim.Entry{Platform: Platform, Credential: sim.CredentialHash(credential), Method: name}
	s.describeUser(&entry, credential)
	x := s.core.Begin(w, r, entry)
	if x.Cut() {
		return
	}
	body, err := io.ReadAll(io.LimitReader(x.Body(), maxBody+1))
	c := &call{name: name, r: r, query: r.URL.Query(), body: body, id: id, header: http.Header{}, log: x.Entry(), note: x.Note}
	if name == "POST /2/tweets" {
		describePost(x.Entry(), body)
	}
	x.Arrive()
	x.Answer(func() sim.Reply {
		s.mu.Lock()
		defer s.mu.Unlock()
		done, refused := outcome{}, (*problem)(nil)
		switch {
		case err != nil:
			refused = invalid("The request body cannot be read.", "")
		case len(body) > maxBody:
			refused = named("too-large")
		default:
			done, refused = s.answer(c)
		}
		if refused != nil {
			reply := refuse(refused, c.header)
			if refused.status == http.StatusTooManyRequests {
				reply.RetryAfter = untilReset(c.header)
			}
			return reply
		}
		reply := sim.Reply{
			Status: done.status, ContentType: "application/json; charset=utf-8", Header: c.header, Body: encode(done.body), Accepted: true,
		}
		if done.id != "" {
			reply.MessageIDs = []string{done.id}
		}
		return reply
	}, refuseFault)
}

func (s *Server) answer(c *call) (outcome, *problem) {
	switch c.name {
	case "POST /2/oauth2/token":
		return s.refresh(c)
	case "POST /2/oauth2/revoke":
		return s.revoke(c)
	}
	to, known := routes[c.name]
	if !known {
		if knownPath(c.name) {
			return outcome{}, named("method")
		}
		return outcome{}, named("not-found")
	}
	if refused := s.authenticate(c, to); refused != nil {
		return outcome{}, refused
	}
	if !s.spend(c.name, c) {
		return outcome{}, named("rate-limited")
	}
	switch {
	case c.user.Standing == StandingSuspended:
		return outcome{}, named("user-suspended")
	case c.user.Standing == StandingLocked:
		return outcome{}, named("code-326")
	case c.app.spent():
		return outcome{}, c.app.spendCap()
	case c.app.limited && c.app.credits <= 0:
		return outcome{}, named("credits")
	}
	c.ignoreUnknown(to.params)
	done, refused := to.run(s, c)
	if done.status == 0 {
		done.status = http.StatusOK
	}
	return done, refused
}

// describeUser adds the account of a call to the log entry, before the call is checked.
func (s *Server) describeUser(e *sim.Entry, credential string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var u *user
	if t := s.tokens[credential]; t != nil && t.kind != appOnly {
		u = t.user
	} else if s.opts.AnyAccount && tokenForm.MatchString(credential) {
		u = s.userOf(credential)
	}
	if u != nil {
		e.Chat, e.ChatTitle = u.ID, u.Name+" @"+u.Username
	}
}

// describePost adds the content of a post to the log entry.
func describePost(e *sim.Entry, body []byte) {
	e.Items = 1
	var post struct {
		Text  string `json:"text"`
		Reply struct {
			To string `json:"in_reply_to_tweet_id"`
		} `json:"reply"`
		MadeWithAI bool `json:"made_with_ai"`
	}
	// The check of the call refuses a body that cannot be read.
	if json.Unmarshal(body, &post) != nil {
		return
	}
	e.ReplyTo = post.Reply.To
	if post.MadeWithAI {
		e.Badges = append(e.Badges, "made with AI")
	}
	if post.Text != "" {
		e.Text, e.TextDigest, e.Marks = post.Text, sim.Digest([]byte(post.Text)), linkMarks(post.Text)
	}
}

// decode reads a JSON body. Another content type, unknown fields and further values are errors.
func (c *call) decode(v any) *problem {
	kind, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return invalid("Requests with bodies must have content-type of application/json.", "")
	}
	dec := json.NewDecoder(bytes.NewReader(c.body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			return invalid(fmt.Sprintf("$.%s: %s found, %s expected", wrong.Field, wrong.Value, wrong.Type), "")
		}
		if field, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
			return invalid("$."+strings.Trim(field, `"`)+": is not defined in the schema and the schema does not allow additional properties", "")
		}
		return invalid("Invalid JSON in the request body.", "")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return invalid("Invalid JSON in the request body.", "")
	}
	return nil
}

func (s *Server) me(c *call) (outcome, *problem) {
	return outcome{body: map[string]any{"data": map[string]any{"id": c.user.ID, "name": c.user.Name, "username": c.user.Username}}}, nil
}

func timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
