package daemon

import (
	"net"
	"net/http"
	"net/netip"
	"sync"

	"autopost/internal/worker"
)

// connectionsPerAddress is the largest number of open connections of one address. Loopback addresses are not bounded,
// because a proxy on the same machine has all its clients behind it.
const connectionsPerAddress = 1000

// boundedListener closes a new connection of an address that has too many.
type boundedListener struct {
	net.Listener

	most int
	mu   sync.Mutex
	open map[netip.Addr]int
}

func bounded(listener net.Listener, most int) *boundedListener {
	return &boundedListener{Listener: listener, most: most, open: map[netip.Addr]int{}}
}

// Accept returns the next connection of an address that does not have too many.
func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		at := addressOf(conn)
		if !at.IsValid() || at.IsLoopback() {
			return conn, nil
		}
		if l.enter(at) {
			return &countedConn{Conn: conn, leave: func() { l.leave(at) }}, nil
		}
		_ = conn.Close() // the client sees a closed connection either way
	}
}

// addressOf returns the address of the client; it is not valid if the connection has none.
func addressOf(conn net.Conn) netip.Addr {
	from, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return from.Addr().Unmap()
}

func (l *boundedListener) enter(at netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[at] >= l.most {
		return false
	}
	l.open[at]++
	return true
}

func (l *boundedListener) leave(at netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[at]--; l.open[at] == 0 {
		delete(l.open, at)
	}
}

// countedConn is a connection that counts until its first Close.
type countedConn struct {
	net.Conn

	once  sync.Once
	leave func()
}

func (c *countedConn) Close() error {
	c.once.Do(c.leave)
	return c.Conn.Close()
}

// contained reports a panic of a handler and closes its connection.
func contained(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		aborted := false
		failed := worker.Contained(r.Context(), func() error {
			defer func() {
				switch value := recover(); value {
				case nil:
				case http.ErrAbortHandler:
					aborted = true
				default:
					panic(value)
				}
			}()
			next.ServeHTTP(w, r)
			return nil
		})()
		if aborted || failed != nil {
			panic(http.ErrAbortHandler)
		}
	})
}

// protected forbids caches to keep an answer, and browsers to guess its type.
func protected(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		next.ServeHTTP(w, r)
	})
}
