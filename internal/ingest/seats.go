package ingest

import (
	"context"
	"sync"
)

// seats bound how many submissions are fetched at once, and how many of them for
// one workspace or from one host: each may hold as many as are free. However many
// slow ones there are, some stay for whoever comes next.
type seats struct {
	mu    sync.Mutex
	free  int
	held  map[string]int
	freed chan struct{} // closed when a seat is given back
}

func newSeats(n int) *seats {
	return &seats{free: n, held: map[string]int{}, freed: make(chan struct{})}
}

// take waits for a seat that all parties share in; the error is that of ctx.
func (s *seats) take(ctx context.Context, parties ...string) error {
	for {
		freed, ok := s.try(parties)
		if ok {
			return nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (s *seats) try(parties []string) (freed <-chan struct{}, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range parties {
		if s.held[p] >= s.free {
			return s.freed, false
		}
	}
	s.count(parties, 1)
	return nil, true
}

func (s *seats) leave(parties ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count(parties, -1)
	close(s.freed)
	s.freed = make(chan struct{})
}

// count expects mu to be held.
func (s *seats) count(parties []string, n int) {
	s.free -= n
	for _, p := range parties {
		if s.held[p] += n; s.held[p] == 0 {
			delete(s.held, p)
		}
	}
}
