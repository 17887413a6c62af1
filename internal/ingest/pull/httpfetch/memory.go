package httpfetch

import (
	"context"
	"io"

	"autopost/internal/outbound"
)

const (
	// small is the size in bytes up to which documents are not limited in number.
	small = 512 << 10
	// largeAtOnce is how many of the larger documents are read and parsed at once.
	largeAtOnce = 2
)

// MemoryLimit limits the memory for the documents of all sources: only a few large ones are read and parsed at once.
// Make it by NewMemoryLimit.
type MemoryLimit struct{ large chan struct{} }

// NewMemoryLimit makes a MemoryLimit.
func NewMemoryLimit() *MemoryLimit { return &MemoryLimit{large: make(chan struct{}, largeAtOnce)} }

// Read reads a body of at most MaxBody bytes; a larger one fails with outbound.ErrTooLarge. Call release after parsing,
// also after an error.
func (r *MemoryLimit) Read(ctx context.Context, body io.Reader) (document []byte, release func(), err error) {
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
