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

// order is one parsed AUTOPOST_FAILPOINT.
type order struct {
	point Point
	nth   int64
	after time.Duration
	// panics makes a point of the code panic instead of ending the process.
	panics bool
	passed atomic.Int64
}

// armed is nil in an ordinary build: only Arm sets it.
var armed *order

// Arm makes this process stop at the point that text names: POINT[:NTH[:DELAY]] or POINT:NTH:panic. An empty text
// names none. Arm panics if it cannot parse the text, because a test that stops nothing proves nothing. Call it
// before main: it is not safe beside Hit. Only builds with the tag "failpoint" call it.
func Arm(text string) {
	if text == "" {
		return
	}
	parts := strings.Split(text, ":")
	o := &order{point: Point(parts[0]), nth: 1}
	var err error
	if len(parts) > 1 {
		o.nth, err = strconv.ParseInt(parts[1], 10, 64)
	}
	if len(parts) > 2 {
		if o.panics = parts[2] == "panic"; !o.panics && err == nil {
			o.after, err = time.ParseDuration(parts[2])
		}
	}
	if err != nil || len(parts) > 3 {
		panic("AUTOPOST_FAILPOINT: want POINT:NTH:DELAY or POINT:NTH:panic, not " + text)
	}
	armed = o
}

func due(p Point) bool { return armed != nil && p == armed.point && armed.passed.Add(1) == armed.nth }

// Hit is a point of the code.
func Hit(p Point) {
	switch {
	case !due(p):
	case armed.panics:
		panic("failpoint " + string(p))
	default:
		die()
	}
}

// Within is a point of time, within the call that begins now.
func Within(p Point) {
	if due(p) {
		time.AfterFunc(armed.after, die)
	}
}

// Halfway is a point in the middle of the size bytes of a content. It returns the content itself in a process that
// is not armed.
func Halfway(p Point, content io.ReadSeekCloser, size int64) io.ReadSeekCloser {
	if armed == nil {
		return content
	}
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
