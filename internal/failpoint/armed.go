//go:build failpoint

package failpoint

import (
	"io"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// order is what AUTOPOST_FAILPOINT says.
type order struct {
	point Point
	nth   int64
	after time.Duration
	// panics makes a point of the code panic instead of ending the process.
	panics bool
}

var (
	armed  = parse(os.Getenv("AUTOPOST_FAILPOINT"))
	passed atomic.Int64
)

// parse panics on what it does not understand: a test that does not kill proves nothing.
func parse(text string) (o order) {
	if text == "" {
		return o
	}
	parts := strings.Split(text, ":")
	o.point, o.nth = Point(parts[0]), 1
	var err error
	if len(parts) > 1 {
		o.nth, err = strconv.ParseInt(parts[1], 10, 64)
	}
	if o.panics = len(parts) > 2 && parts[2] == "panic"; o.panics {
		return o
	}
	if err == nil && len(parts) > 2 {
		o.after, err = time.ParseDuration(parts[2])
	}
	if err != nil || len(parts) > 3 {
		panic("AUTOPOST_FAILPOINT: want POINT:NTH:DELAY, not " + text)
	}
	return o
}

func due(p Point) bool { return p == armed.point && passed.Add(1) == armed.nth }

// Here is a point of the code.
func Hit(p Point) {
	switch {
	case !due(p):
	case armed.panics:
		panic("failpoint " + string(p))
	default:
		die()
	}
}

// During is a point of time, within the call that begins now.
func Within(p Point) {
	if due(p) {
		time.AfterFunc(armed.after, die)
	}
}

// Halfway is a point in the middle of the size bytes of a content.
func Halfway(p Point, content io.ReadSeekCloser, size int64) io.ReadSeekCloser {
	return &halfway{ReadSeekCloser: content, point: p, left: size / 2}
}

type halfway struct {
	io.ReadSeekCloser
	point Point
	left  int64
}

func (h *halfway) Read(p []byte) (int, error) {
	before := h.left
	n, err := h.ReadSeekCloser.Read(p)
	h.left -= int64(n)
	if before > 0 && h.left <= 0 {
		Hit(h.point)
	}
	return n, err
}

// die does not return: nothing that comes after the point is done.
func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}
