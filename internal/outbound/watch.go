package outbound

import (
	"crypto/tls"
	"net"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
)

// countedConn counts the bytes that the kernel took.
type countedConn struct {
	net.Conn
	sent atomic.Int64
}

func (c *countedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.sent.Add(int64(n))
	return n, err
}

// watch finds out whether a byte of a request left. Tracing alone cannot tell:
// WroteHeaders fires when the headers are in a buffer, also of a connection that is
// already dead; and the byte counter alone counts TLS handshakes. Both together err on the
// side of "written" only, when a connection is closed between buffer and wire.
type watch struct {
	mu      sync.Mutex
	conn    *countedConn
	before  int64
	began   bool
	shared  bool // HTTP/2: other requests write to the same connection
	unknown bool // a connection that is not ours
	earlier bool // a previous hop of a redirect was written
}

func (w *watch) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) { w.got(info.Conn) },
		WroteHeaderField: func(string, []string) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.began = true
		},
	}
}

func (w *watch) got(conn net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.earlier = w.grew()
	w.began = false
	if secure, ok := conn.(*tls.Conn); ok {
		w.shared = secure.ConnectionState().NegotiatedProtocol == "h2"
		conn = secure.NetConn()
	}
	counted, ok := conn.(*countedConn)
	w.unknown = !ok
	if ok {
		w.conn, w.before = counted, counted.sent.Load()
	}
}

// grew expects mu to be held.
func (w *watch) grew() bool {
	switch {
	case w.earlier || w.shared:
		return true
	case w.unknown:
		return w.began
	default:
		return w.began && w.conn.sent.Load() > w.before
	}
}

func (w *watch) written() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.grew()
}
