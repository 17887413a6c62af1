package youtube

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"autopost/internal/sim"
)

const maxBody = 1 << 20 // bytes of a JSON body

// call is a parsed request.
type call struct {
	name  string
	token *token
	r     *http.Request
	query url.Values
	body  []byte
	log   *sim.Entry
	note  func(string)
}

// outcome is the answer of a successful call.
type outcome struct {
	status int
	header http.Header
	body   any // nil for an empty body
}

type route struct {
	params []string
	scopes []string
	bucket string
	cost   int
	body   int64 // bytes
	run    func(*Server, *call) (outcome, *refusal)
}

const uploadPath = "/upload/youtube/v3/videos"

var (
	uploading = []string{ScopeUpload, ScopeAll}
	managing  = []string{ScopeAll}
)

// standard are the parameters of every call.
var standard = []string{"alt", "fields", "prettyPrint", "quotaUser", "uploadType", "part"}

// routes are the calls by method and path.
var routes = map[string]route{
	"GET /youtube/v3/channels":               {[]string{"mine", "id", "maxResults"}, managing, "units", 1, maxBody, (*Server).listChannels},
	"GET /youtube/v3/videos":                 {[]string{"id", "maxResults"}, managing, "units", 1, maxBody, (*Server).listVideos},
	"PUT /youtube/v3/videos":                 {nil, managing, "units", 50, maxBody, (*Server).updateVideo},
	"DELETE /youtube/v3/videos":              {[]string{"id"}, managing, "units", 50, maxBody, (*Server).deleteVideo},
	"GET /youtube/v3/playlistItems":          {[]string{"playlistId", "maxResults", "pageToken"}, managing, "units", 1, maxBody, (*Server).listPlaylist},
	"POST /youtube/v3/playlistItems":         {nil, managing, "units", 50, maxBody, (*Server).addToPlaylist},
	"GET /youtube/v3/captions":               {[]string{"videoId"}, managing, "units", 50, maxBody, (*Server).listCaptions},
	"GET /youtube/v3/commentThreads":         {[]string{"videoId", "order", "textFormat", "maxResults", "pageToken"}, managing, "units", 1, maxBody, (*Server).listComments},
	"POST /youtube/v3/commentThreads":        {nil, managing, "units", 50, maxBody, (*Server).insertComment},
	"GET /youtube/v3/search":                 {[]string{"forMine", "type", "q", "maxResults"}, managing, "searches", 1, maxBody, (*Server).search},
	"POST " + uploadPath:                     {[]string{"notifySubscribers"}, uploading, "uploads", 1, maxBody, (*Server).startSession},
	"POST /upload/youtube/v3/thumbnails/set": {[]string{"videoId"}, uploading, "units", 50, maxThumbnail + 1, (*Server).setThumbnail},
	"POST /upload/youtube/v3/captions":       {nil, managing, "units", 400, maxCaption + maxBody, (*Server).insertCaption},
}

// ServeHTTP answers a call or receives a part of an upload.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, "/resumable")
	if path == uploadPath && r.URL.Query().Has("upload_id") {
		s.serveSession(w, r)
		return
	}
	name := r.Method + " " + path
	to, known := routes[name]
	x := s.core.Begin(w, r, s.described(r, name))
	if x.Cut() {
		return
	}
	limit := max(to.body, maxBody)
	body, err := io.ReadAll(io.LimitReader(x.Body(), limit+1))
	c := &call{name: name, r: r, query: r.URL.Query(), body: body, log: x.Entry(), note: x.Note}
	x.Arrive()
	x.Answer(func() sim.Reply {
		s.mu.Lock()
		defer s.mu.Unlock()
		var done outcome
		refused := because("parseError")
		switch {
		case err != nil:
		case int64(len(body)) > limit:
			refused = because("uploadTooLarge")
		case !known:
			refused = unknown(path)
		default:
			done, refused = s.answer(c, to)
		}
		if refused != nil {
			return refuse(refused)
		}
		reply := sim.Reply{Status: done.status, Header: done.header, Accepted: true}
		if reply.Status == 0 {
			reply.Status = http.StatusOK
		}
		if done.body != nil {
			reply.ContentType, reply.Body = "application/json; charset=UTF-8", encode(done.body)
		}
		return reply
	}, refuseFault)
}

// unknown refuses a call without a route.
func unknown(path string) *refusal {
	for name := range routes {
		if strings.HasSuffix(name, " "+path) {
			return because("httpMethodNotAllowed")
		}
	}
	return because("notFound")
}

// answer checks the caller, the quota and the parameters, in this order. An invalid call also costs
// quota.
func (s *Server) answer(c *call, to route) (outcome, *refusal) {
	t, refused := s.authenticate(c.r.Header.Get("Authorization"), to.scopes)
	if refused != nil {
		return outcome{}, refused
	}
	c.token = t
	if refused := s.spend(t.project, c.name, to.bucket, to.cost); refused != nil {
		return outcome{}, refused
	}
	for name := range c.query {
		if !slices.Contains(standard, name) && !slices.Contains(to.params, name) {
			return outcome{}, wrong("badRequest", `Invalid JSON payload received. Unknown name "`+name+`": Cannot bind query parameter.`, name)
		}
	}
	return to.run(s, c)
}

// described returns the log entry of a call from its headers.
func (s *Server) described(r *http.Request, name string) sim.Entry {
	bearer, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	entry := sim.Entry{Platform: Platform, Method: name, Credential: sim.CredentialHash(bearer)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.tokens[bearer]; t != nil {
		entry.Chat, entry.ChatTitle = t.channel.ID, t.channel.Title
	} else if s.opts.AnyAccount && tokenForm.MatchString(bearer) {
		c := s.channelOf(bearer)
		entry.Chat, entry.ChatTitle = c.ID, c.Title
	}
	return entry
}

var knownParts = []string{"id", "snippet", "status", "contentDetails", "processingDetails", "recordingDetails", "localizations", "statistics"}

// listed returns the values of a parameter that is repeated or has commas.
func (c *call) listed(name string) string { return strings.Join(c.query[name], ",") }

// parts are the parts that a call requests.
func (c *call) parts() ([]string, *refusal) {
	given := c.listed("part")
	if given == "" {
		return nil, wrong("missingRequiredParameter", "Required parameter: part", "part")
	}
	parts := strings.Split(given, ",")
	for _, part := range parts {
		if !slices.Contains(knownParts, part) {
			return nil, wrong("unknownPart", "'"+part+"'", "part")
		}
	}
	return parts, nil
}

// decode reads a JSON body. Unknown fields are errors.
func (c *call) decode(v any) *refusal {
	kind, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return wrong("badRequest", "The request's content type is not application/json.", "")
	}
	return decodeJSON(c.body, v)
}

func decodeJSON(body []byte, v any) *refusal {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		if field, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
			return wrong("badRequest", "Invalid JSON payload received. Unknown name "+field+": Cannot find field.", "")
		}
		var mistyped *json.UnmarshalTypeError
		if errors.As(err, &mistyped) {
			return wrong("badRequest", "Invalid value at '"+mistyped.Field+"' ("+mistyped.Type.String()+")", "")
		}
		return wrong("parseError", "Parse Error", "")
	}
	return nil
}

// base is the address of the platform for the caller.
func base(r *http.Request) string {
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	requested, _, _ := strings.Cut(r.RequestURI, "?")
	return scheme + r.Host + strings.TrimSuffix(requested, r.URL.EscapedPath())
}
