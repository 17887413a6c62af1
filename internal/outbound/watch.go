package outbound

import (
	"crypto/tls"
	"net"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
)

// countedConn counts the bytes that the kernel accepted.
type countedConn struct {
	net.Conn
	sent atomic.Int64
}

func (c *countedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.sent.Add(int64(n))
	return n, err
}

// watch determines whether a byte of a request was sent. Neither source is enough alone: WroteHeaders
// fires when the headers are in a buffer, even if the connection is closed; the byte counter also
// counts TLS handshakes. Both together can only err towards "written", if a connection closes between
// buffer and wire.
type watch struct {
	mu      sync.Mutex
	conn    *countedConn
	before  int64
	began   bool
	shared  bool // HTTP/2: other requests write to the same connection
	unknown bool // the connection is not a countedConn
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

// grew requires mu.
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
