// Package webhook simulates a receiver of webhooks signed as Standard Webhooks. It checks signature,
// age and repetition, keeps the events in order, and answers with a configurable status.
//
// An endpoint is a path. "status=" in its query sets the status of the answer to a verified event. So
// an address alone can simulate an endpoint that is gone (?status=410) or has moved (?status=301).
package webhook

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"autopost/internal/sim"
)

// Platform is the simulator's name in the log and in fault rules.
const Platform = "webhook"

const (
	// Tolerance is the maximum difference between an event's timestamp and the clock.
	Tolerance = 5 * time.Minute

	secretPrefix = "whsec_"
	minSecret    = 24      // bytes
	maxSecret    = 64      // bytes
	maxBody      = 1 << 20 // bytes
)

// Options configure a Server.
type Options struct {
	// AnyEndpoint creates an endpoint at its first request. GET returns its secret.
	AnyEndpoint bool
}

// Event is a received event.
type Event struct {
	ID        string // webhook-id
	Type      string
	Timestamp time.Time // webhook-timestamp
	Received  time.Time
	Body      json.RawMessage
	// Copies is the number of times that it arrived.
	Copies int
}

// Server is the receiver, an http.Handler. Its paths are its endpoints.
type Server struct {
	core *sim.Core
	opts Options

	mu        sync.Mutex
	endpoints map[string]*endpoint
}

type endpoint struct {
	secrets [][]byte
	status  int
	events  []*Event
}

// New returns a receiver without endpoints.
func New(core *sim.Core, opts Options) *Server {
	return &Server{core: core, opts: opts, endpoints: map[string]*endpoint{}}
}

// AddEndpoint adds or replaces an endpoint; a replaced endpoint keeps its events. A secret is "whsec_"
// and 24 to 64 bytes in base64. Each of several secrets is valid.
func (s *Server) AddEndpoint(name string, secrets ...string) error {
	var keys [][]byte
	for _, secret := range secrets {
		encoded, ok := strings.CutPrefix(secret, secretPrefix)
		key, err := base64.StdEncoding.DecodeString(encoded)
		if !ok || err != nil || len(key) < minSecret || len(key) > maxSecret {
			return errors.New("webhook secret must be whsec_ and 24 to 64 bytes in base64")
		}
		keys = append(keys, key)
	}
	if name == "" || len(keys) == 0 {
		return errors.New("webhook endpoint must have a name and a secret")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.endpoints[name]; known != nil {
		known.secrets = keys
		return nil
	}
	s.endpoints[name] = &endpoint{secrets: keys}
	return nil
}

// SetStatus sets the status of an endpoint's answers to verified events; 0 restores 204.
func (s *Server) SetStatus(name string, status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.endpoints[name]; e != nil {
		e.status = status
	}
}

// Events returns the accepted events of an endpoint in order of arrival.
func (s *Server) Events(name string) []Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.endpoints[name]
	if e == nil {
		return nil
	}
	out := make([]Event, len(e.events))
	for i, event := range e.events {
		out[i] = *event
	}
	return out
}

// Reset removes events and statuses. Endpoints stay.
func (s *Server) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.endpoints {
		e.events, e.status = nil, 0
	}
}

// endpoint returns an endpoint, or nil.
func (s *Server) endpoint(name string) *endpoint {
	e := s.endpoints[name]
	if e == nil && s.opts.AnyEndpoint && name != "" {
		e = &endpoint{secrets: [][]byte{ownSecret(name)}}
		s.endpoints[name] = e
	}
	return e
}

// ownSecret is the secret of an automatically created endpoint.
func ownSecret(name string) []byte {
	sum := sha256.Sum256([]byte("webhook simulator " + name))
	return sum[:]
}

// ServeHTTP receives one event.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := strings.Trim(r.URL.Path, "/")
	x := s.core.Begin(w, r, sim.Entry{Platform: Platform, Method: r.Method, Chat: name})
	if x.Cut() {
		return
	}
	body, err := io.ReadAll(io.LimitReader(x.Body(), maxBody+1))
	kind := describe(x.Entry(), r, body)
	x.Arrive()
	x.Answer(func() sim.Reply {
		s.mu.Lock()
		defer s.mu.Unlock()
		to := s.endpoint(name)
		switch {
		case err != nil || len(body) > maxBody:
			return refuse(http.StatusRequestEntityTooLarge, "the body cannot be read or is larger than 1 MiB")
		case to == nil:
			return refuse(http.StatusNotFound, "no such endpoint")
		case r.Method == http.MethodGet && s.opts.AnyEndpoint:
			return sim.Reply{Status: http.StatusOK, ContentType: "application/json", Accepted: true,
				Body: []byte(`{"secret":"` + secretPrefix + base64.StdEncoding.EncodeToString(to.secrets[0]) + `"}`)}
		case r.Method != http.MethodPost:
			return refuse(http.StatusMethodNotAllowed, "only POST")
		}
		if reply := verify(to, r.Header, body); reply.Status != 0 {
			return reply
		}
		return to.take(x, r, Event{ID: r.Header.Get("webhook-id"), Type: kind, Timestamp: stamp(r.Header), Received: time.Now(), Body: body})
	}, func(f sim.Fault) sim.Reply {
		reply := refuse(f.Status, f.Description)
		if f.RetryAfter > 0 {
			reply.RetryAfter = f.RetryAfter
			reply.Header = http.Header{"Retry-After": {strconv.Itoa(f.RetryAfter)}}
		}
		return reply
	})
}

// describe fills the log entry from the event and returns the event's type.
func describe(e *sim.Entry, r *http.Request, body []byte) string {
	var said struct {
		Type string `json:"type"`
	}
	var indented bytes.Buffer
	if r.Method != http.MethodPost || json.Unmarshal(body, &said) != nil || json.Indent(&indented, body, "", "  ") != nil {
		return ""
	}
	e.Items, e.Title, e.Text, e.TextDigest = 1, said.Type, indented.String(), sim.Digest(body)
	return said.Type
}

func stamp(header http.Header) time.Time {
	seconds, err := strconv.ParseInt(header.Get("webhook-timestamp"), 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(seconds, 0)
}

// verify checks an event. The zero Reply means that it is valid.
func verify(to *endpoint, header http.Header, body []byte) sim.Reply {
	id, at := header.Get("webhook-id"), stamp(header)
	switch {
	case id == "" || at.IsZero() || header.Get("webhook-signature") == "":
		return refuse(http.StatusUnauthorized, "webhook-id, webhook-timestamp or webhook-signature is missing")
	case strings.Contains(id, "."):
		return refuse(http.StatusUnauthorized, "webhook-id holds a dot")
	case time.Since(at) > Tolerance:
		return refuse(http.StatusUnauthorized, "webhook-timestamp is too old")
	case time.Until(at) > Tolerance:
		return refuse(http.StatusUnauthorized, "webhook-timestamp is in the future")
	case !signed(to, header, body):
		return refuse(http.StatusUnauthorized, "webhook-signature does not match")
	case !strings.HasPrefix(header.Get("Content-Type"), "application/json") || !json.Valid(body):
		return refuse(http.StatusBadRequest, "the event is not JSON")
	}
	return sim.Reply{}
}

// signed reports whether one of the signatures matches one of the secrets.
func signed(to *endpoint, header http.Header, body []byte) bool {
	content := slices.Concat([]byte(header.Get("webhook-id")+"."+header.Get("webhook-timestamp")+"."), body)
	for candidate := range strings.FieldsSeq(header.Get("webhook-signature")) {
		encoded, ok := strings.CutPrefix(candidate, "v1,")
		signature, err := base64.StdEncoding.DecodeString(encoded)
		if !ok || err != nil {
			continue
		}
		for _, secret := range to.secrets {
			mac := hmac.New(sha256.New, secret)
			_, _ = mac.Write(content) // a hash never fails
			if hmac.Equal(signature, mac.Sum(nil)) {
				return true
			}
		}
	}
	return false
}

// take stores a verified event and answers it, unless the configured status is an error.
func (e *endpoint) take(x *sim.Exchange, r *http.Request, event Event) sim.Reply {
	status := e.status
	if asked, err := strconv.Atoi(r.URL.Query().Get("status")); err == nil && asked >= 200 && asked <= 599 {
		status = asked
	}
	if status == 0 {
		status = http.StatusNoContent
	}
	if status >= http.StatusMultipleChoices {
		reply := refuse(status, "")
		if status < http.StatusBadRequest {
			reply.Header = http.Header{"Location": {r.URL.Path + "-moved"}}
		}
		return reply
	}
	reply := sim.Reply{Status: status, Accepted: true}
	for _, known := range e.events {
		if known.ID == event.ID {
			x.Note("webhook-id was seen before")
			if !bytes.Equal(known.Body, event.Body) {
				x.Note("and its body was another")
			}
			known.Copies++
			return reply
		}
	}
	event.Copies = 1
	e.events = append(e.events, &event)
	reply.MessageIDs = []string{event.ID}
	return reply
}

func refuse(status int, reason string) sim.Reply {
	if reason == "" {
		reason = http.StatusText(status)
	}
	return sim.Reply{Status: status, ContentType: "text/plain; charset=utf-8", Body: []byte(reason + "\n"), Reason: reason}
}
