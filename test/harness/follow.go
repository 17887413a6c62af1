package harness

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/wait"
)

// API sends a request to the API of a daemon. body may be empty.
func (h *Harness) API(d *Daemon, method, path, key, body string) Answer {
	h.t.Helper()
	answer, err := h.request(method, d.URL+path, key, strings.NewReader(body))
	require.NoError(h.t, err)
	return answer
}

// StreamEvent is a server-sent event of the API.
type StreamEvent struct {
	ID, Kind string
	Data     map[string]any
	// At is when it arrived.
	At time.Time
}

// Stream is an open stream of the API.
type Stream struct {
	Status int

	h    *Harness
	end  context.CancelFunc
	over chan struct{}

	mu     sync.Mutex
	events []StreamEvent
}

// Follow opens a stream with a key. after is the id of the last known event; "" for none. The end of the test closes it.
func (h *Harness) Follow(d *Daemon, key, after string) *Stream {
	h.t.Helper()
	ctx, end := context.WithCancel(context.WithoutCancel(h.t.Context()))
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.URL+"/api/v1/stream", nil)
	require.NoError(h.t, err)
	request.Header.Set("Authorization", "Bearer "+key)
	request.Header.Set("Accept", "text/event-stream")
	if after != "" {
		request.Header.Set("Last-Event-ID", after)
	}
	s := &Stream{h: h, end: end, over: make(chan struct{})}
	h.t.Cleanup(s.Close)
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request) //nolint:bodyclose // the goroutine below closes it
	require.NoError(h.t, err)
	s.Status = response.StatusCode
	go func() {
		defer close(s.over)
		defer func() { _ = response.Body.Close() }()
		s.read(bufio.NewScanner(response.Body))
	}()
	return s
}

func (s *Stream) read(lines *bufio.Scanner) {
	var event StreamEvent
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "id":
			event.ID = value
		case "event":
			event.Kind = value
		case "data":
			if json.Unmarshal([]byte(value), &event.Data) != nil {
				event.Data = nil
			}
		case "":
			if event.Kind != "" {
				event.At = time.Now()
				s.mu.Lock()
				s.events = append(s.events, event)
				s.mu.Unlock()
			}
			event = StreamEvent{}
		}
	}
}

// Events returns what has arrived until now.
func (s *Stream) Events() []StreamEvent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]StreamEvent{}, s.events...)
}

// Await waits for an event of a kind whose data has these values, and returns it.
func (s *Stream) Await(kind string, data map[string]any) (found StreamEvent) {
	s.h.t.Helper()
	wait.Until(s.h.t, "the stream shows "+kind, func() bool {
		for _, event := range s.Events() {
			matches := event.Kind == kind
			for name, value := range data {
				matches = matches && event.Data[name] == value
			}
			if matches {
				found = event
				return true
			}
		}
		return false
	}, func() string { return fmt.Sprint(s.Events()) })
	return found
}

// Over is closed when the connection has ended.
func (s *Stream) Over() <-chan struct{} { return s.over }

// Close ends the connection.
func (s *Stream) Close() {
	s.end()
	<-s.over
}

// TryAPI posts a body to the API. Any goroutine may call it; a refusal is an answer, not an error.
func (h *Harness) TryAPI(d *Daemon, path, key, body string) (Answer, error) {
	return h.request(http.MethodPost, d.URL+path, key, strings.NewReader(body))
}
