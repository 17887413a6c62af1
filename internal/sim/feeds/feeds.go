// Package feeds serves documents that tests and demos set: feeds that change at a fixed address, with
// validators and conditional requests, redirects and 410, in any charset and size. It also serves
// generated media files.
package feeds

import (
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"autopost/internal/sim"
)

const maxDocument = 64 << 20 // bytes of a document set by PUT

// Server serves documents by name. GET and HEAD read a document, PUT sets it.
type Server struct {
	core     *sim.Core
	platform string
	// generate creates a document that was not set; nil disables this.
	generate func(name string) (contentType string, body []byte, ok bool)

	mu        sync.Mutex
	documents map[string]document
}

type document struct {
	contentType string
	body        []byte
	etag        string
	modified    time.Time
	// status other than 200 replaces the body.
	status int
	// header is part of every answer.
	header http.Header
}

// NewFeeds returns a server without documents. Its log platform is "feeds".
func NewFeeds(core *sim.Core) *Server {
	return &Server{core: core, platform: "feeds", documents: map[string]document{}}
}

// NewFiles returns a server that also generates the files that Generate knows. Its log platform is
// "files".
func NewFiles(core *sim.Core) *Server {
	return &Server{core: core, platform: "files", documents: map[string]document{}, generate: Generate}
}

// Set adds or replaces a document. Its validators change only with its content.
func (s *Server) Set(name, contentType string, body []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	etag := `"` + sim.Digest(body)[:16] + `"`
	old, ok := s.documents[name]
	if ok && old.etag == etag && old.contentType == contentType {
		return
	}
	// HTTP dates have whole seconds.
	s.documents[name] = document{contentType: contentType, body: body, etag: etag, modified: time.Now().Truncate(time.Second), header: old.header}
}

// SetHeader adds a header field, such as Cache-Control, to every answer for a name. Set keeps it.
func (s *Server) SetHeader(name, field, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.documents[name]
	d.header = d.header.Clone()
	if d.header == nil {
		d.header = http.Header{}
	}
	d.header.Set(field, value)
	s.documents[name] = d
}

// Redirect answers requests for a document with a redirect: 301, 302, 307 or 308. Set ends it.
func (s *Server) Redirect(name string, status int, to string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.documents[name] = document{status: status, header: http.Header{"Location": {to}}}
}

// Gone answers requests for a document with 410. Set ends it.
func (s *Server) Gone(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.documents[name] = document{status: http.StatusGone}
}

// Get returns a document's content type and body.
func (s *Server) Get(name string) (contentType string, body []byte, ok bool) {
	d, ok := s.find(name)
	return d.contentType, d.body, ok
}

// Reset removes all documents that were set.
func (s *Server) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.documents)
}

func (s *Server) find(name string) (document, bool) {
	s.mu.Lock()
	d, ok := s.documents[name]
	s.mu.Unlock()
	if ok || s.generate == nil {
		return d, ok
	}
	contentType, body, ok := s.generate(name)
	if !ok {
		return document{}, false
	}
	s.Set(name, contentType, body)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.documents[name], true
}

// ServeHTTP answers one request. The path is "/" and the document's name.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/")
	x := s.core.Begin(w, r, sim.Entry{Platform: s.platform, Chat: name, Method: r.Method})
	if x.Cut() {
		return
	}
	body, err := io.ReadAll(io.LimitReader(x.Body(), maxDocument+1))
	x.Arrive()
	x.Answer(func() sim.Reply {
		switch {
		case err != nil:
			return text(http.StatusBadRequest, "the body cannot be read")
		case r.Method == http.MethodGet || r.Method == http.MethodHead:
			return s.get(name, r.Header)
		case r.Method != http.MethodPut:
			return text(http.StatusMethodNotAllowed, "only GET, HEAD and PUT")
		case name == "" || len(body) > maxDocument:
			return text(http.StatusBadRequest, "a document needs a name and at most 64 MiB")
		}
		contentType := r.Header.Get("Content-Type")
		if contentType == "" {
			contentType = http.DetectContentType(body)
		}
		s.Set(name, contentType, body)
		return sim.Reply{Status: http.StatusNoContent, Accepted: true}
	}, func(f sim.Fault) sim.Reply {
		reply := text(f.Status, f.Description)
		if f.RetryAfter > 0 {
			reply.RetryAfter = f.RetryAfter
			reply.Header = http.Header{"Retry-After": {strconv.Itoa(f.RetryAfter)}}
		}
		return reply
	})
}

func text(status int, reason string) sim.Reply {
	if reason == "" {
		reason = http.StatusText(status)
	}
	return sim.Reply{Status: status, ContentType: "text/plain; charset=utf-8", Body: []byte(reason + "\n"), Reason: reason}
}

func (s *Server) get(name string, asked http.Header) sim.Reply {
	d, ok := s.find(name)
	if !ok {
		return text(http.StatusNotFound, "no such document")
	}
	if d.status != 0 {
		reply := text(d.status, "")
		reply.Header = d.header
		return reply
	}
	reply := sim.Reply{
		Status: http.StatusOK, ContentType: d.contentType, Body: d.body, Accepted: true,
		Header: http.Header{"Etag": {d.etag}, "Last-Modified": {d.modified.UTC().Format(http.TimeFormat)}},
	}
	maps.Copy(reply.Header, d.header)
	if d.unchanged(asked) {
		reply.Status, reply.Body, reply.ContentType = http.StatusNotModified, nil, ""
	}
	return reply
}

// unchanged compares the validators. An entity tag takes precedence.
func (d document) unchanged(asked http.Header) bool {
	if tags := asked.Get("If-None-Match"); tags != "" {
		for tag := range strings.SplitSeq(tags, ",") {
			tag = strings.TrimPrefix(strings.TrimSpace(tag), "W/")
			if tag == "*" || tag == d.etag {
				return true
			}
		}
		return false
	}
	since, err := http.ParseTime(asked.Get("If-Modified-Since"))
	return err == nil && !d.modified.After(since)
}
