package web

import (
	"context"
	"io"

	"autopost/internal/outbound"
)

const (
	// small is what any number of sources may hold in memory at once, in bytes.
	small = 512 << 10
	// largeAtOnce is how many of the larger documents are read and parsed at once.
	largeAtOnce = 2
)

// Room bounds what the documents of all sources take in memory together: of large
// ones, a few are read and parsed at a time. Make it by NewRoom.
type Room struct{ large chan struct{} }

// NewRoom makes a Room.
func NewRoom() *Room { return &Room{large: make(chan struct{}, largeAtOnce)} }

// Read reads a body of at most MaxBody bytes, else it fails with
// outbound.ErrTooLarge. Call release when the document is parsed, also after an error.
func (r *Room) Read(ctx context.Context, body io.Reader) (document []byte, release func(), err error) {
	release = func() {}
	limited := outbound.Limit(io.NopCloser(body), MaxBody)
	document, err = io.ReadAll(io.LimitReader(limited, small))
	if err != nil || len(document) < small {
		return document, release, err
	}
	select {
	case r.large <- struct{}{}:
		release = func() { <-r.large }
	case <-ctx.Done():
		return nil, release, ctx.Err()
	}
	rest, err := io.ReadAll(limited)
	return append(document, rest...), release, err
}
