package stream

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"autopost/internal/worker"
)

// TooManyError is the answer to Open while too many streams are open.
type TooManyError struct {
	// Of is key, workspace or daemon.
	Of   string
	Most int
}

// Error implements error.
func (e *TooManyError) Error() string {
	return fmt.Sprintf("this %s has %d open streams", e.Of, e.Most)
}

// Reader is who opens a stream.
type Reader struct {
	WorkspaceID string
	// Holder shares a bound of streams: an API key, or a session.
	Holder string
	// KeyID and SessionID are the API key and the session whose end ends the stream; "" for none.
	KeyID, SessionID string
}

// Stream is one open connection. Close it.
type Stream struct {
	hub     *Hub
	reader  Reader
	wake    chan struct{}
	done    chan struct{}
	closing sync.Once

	mu      sync.Mutex
	begun   bool
	pending []Item
}

// Open begins a stream. after is the ID of the last item that the reader has; "" for a new reader. If all items after
// it are kept, the stream continues there. Otherwise it begins with Reset. Errors: *TooManyError, ErrClosed.
func (h *Hub) Open(reader Reader, after string) (*Stream, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.workspaces[reader.WorkspaceID]
	switch {
	case h.closed:
		return nil, ErrClosed
	case h.open >= PerDaemon:
		return nil, &TooManyError{"daemon", PerDaemon}
	case w != nil && len(w.streams) >= PerWorkspace:
		return nil, &TooManyError{"workspace", PerWorkspace}
	case h.holders[reader.Holder] >= PerHolder:
		return nil, &TooManyError{"key", PerHolder}
	}
	if w == nil {
		h.seq++ // so that no earlier ID continues here
		w = &workspace{streams: map[*Stream]struct{}{}, seen: map[string]time.Time{}, from: h.seq}
		h.workspaces[reader.WorkspaceID] = w
	}
	s := &Stream{hub: h, reader: reader, wake: make(chan struct{}, 1), done: make(chan struct{})}
	w.streams[s] = struct{}{}
	h.open++
	h.holders[reader.Holder]++
	switch last := h.numberOf(after); {
	case last >= w.from && last <= h.seq:
		s.begun = true
		for _, item := range w.ring {
			if h.numberOf(item.ID) > last {
				s.push(item)
			}
		}
	case w.live:
		s.begin(h.reset())
	default: // the next read begins it
	}
	worker.Wake(h.cfg.Wake)
	return s, nil
}

// Next waits for items and takes them; nil after wait or with the end of the stream. Done says which.
func (s *Stream) Next(ctx context.Context, wait time.Duration) []Item {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		if items := s.take(); items != nil {
			return items
		}
		select {
		case <-s.wake:
		case <-timer.C:
			return nil
		case <-s.done:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// Done is closed when the stream has ended: its key is not valid any more, or the daemon stops.
func (s *Stream) Done() <-chan struct{} { return s.done }

// Close ends the stream. It may be called more than once.
func (s *Stream) Close() {
	s.end()
	s.hub.forget(s)
}

// forget removes a stream. Its workspace is read on for a while.
func (h *Hub) forget(s *Stream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.workspaces[s.reader.WorkspaceID]
	if w == nil {
		return
	}
	if _, known := w.streams[s]; !known {
		return
	}
	delete(w.streams, s)
	h.open--
	if h.holders[s.reader.Holder]--; h.holders[s.reader.Holder] == 0 {
		delete(h.holders, s.reader.Holder)
	}
	if len(w.streams) == 0 {
		w.emptySince = time.Now()
	}
}

func (s *Stream) end() { s.closing.Do(func() { close(s.done) }) }

// begin lets the reader have items, once. first comes before everything that waits.
func (s *Stream) begin(first Item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun {
		s.begun = true
		s.pending = append([]Item{first}, s.pending...)
		worker.Wake(s.wake)
	}
}

// push adds an item. A reader that is too slow gets a Reset in place of all that waits.
func (s *Stream) push(item Item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pending) >= mostPending {
		s.pending = []Item{{ID: item.ID, Number: item.Number, Kind: Reset, Data: json.RawMessage(`{}`)}}
	} else {
		s.pending = append(s.pending, item)
	}
	worker.Wake(s.wake)
}

// replace puts one item in place of all that waits.
func (s *Stream) replace(item Item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = []Item{item}
	worker.Wake(s.wake)
}

func (s *Stream) take() []Item {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun || len(s.pending) == 0 {
		return nil
	}
	items := s.pending
	s.pending = nil
	return items
}
