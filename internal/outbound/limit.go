package outbound

import (
	"fmt"
	"io"
)

// Limit returns at most limit bytes of body and then fails with [ErrTooLarge] if the body is longer.
func Limit(body io.ReadCloser, limit int64) io.ReadCloser {
	return &limited{body: body, left: limit, limit: limit}
}

type limited struct {
	body        io.ReadCloser
	left, limit int64
}

func (l *limited) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	// One byte more than the limit shows whether the body continues.
	if int64(len(p)) > l.left+1 {
		p = p[:l.left+1]
	}
	n, err := l.body.Read(p)
	if int64(n) > l.left {
		n = int(l.left)
		l.left = 0
		return n, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, l.limit)
	}
	l.left -= int64(n)
	return n, err
}

func (l *limited) Close() error { return l.body.Close() }

// ReadAll reads a body of at most limit bytes. A longer body fails with [ErrTooLarge].
func ReadAll(r io.Reader, limit int64) ([]byte, error) {
	return io.ReadAll(Limit(io.NopCloser(r), limit))
}
