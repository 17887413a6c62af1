// Package netfault is a TCP proxy on loopback with scripted faults: slow, cut, reset, silent, or cut
// after the request and before the answer. Tests put it in front of PostgreSQL and the simulators.
package netfault

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Kind is a kind of fault.
type Kind string

// The kinds of faults.
const (
	// Fine passes everything.
	Fine Kind = ""
	// Late delays each piece by Delay in both directions.
	Late Kind = "latency"
	// Drip passes a few bytes at a time and waits for Delay between them.
	Drip Kind = "drip"
	// Cut closes both connections in order.
	Cut Kind = "cut"
	// Reset closes both connections as a crashed machine does.
	Reset Kind = "reset"
	// Silent keeps both connections open and passes nothing more.
	Silent Kind = "half-open"
	// Deaf passes the request and closes both connections when the answer arrives.
	Deaf Kind = "cut after accept"
)

// Kinds lists all faults.
var Kinds = []Kind{Late, Drip, Cut, Reset, Silent, Deaf}

// Fault is the behavior of a proxy.
type Fault struct {
	Kind Kind
	// After is the number of bytes that the caller may send before the fault begins. Late and Drip ignore it.
	After int64
	// Delay applies to Late and Drip.
	Delay time.Duration
}

// dripSize is the number of bytes that Drip passes at a time.
const dripSize = 16

// Proxy is a listener with a target. Any goroutine may call its methods.
type Proxy struct {
	network, target string
	listener        net.Listener
	fault           atomic.Pointer[Fault]
	// disturbed counts the connections that a fault has ended or silenced.
	disturbed atomic.Int64

	mu    sync.Mutex
	calls map[*call]bool
	down  bool
}

// Open starts a proxy to target. The end of the test closes it.
func Open(t testing.TB, network, target string) *Proxy {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l := &Proxy{network: network, target: target, listener: listener, calls: map[*call]bool{}}
	l.fault.Store(&Fault{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.serve()
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		l.HangUp()
		<-done
	})
	return l
}

// Addr returns the address of the listener, host and port.
func (l *Proxy) Addr() string { return l.listener.Addr().String() }

// Make applies a fault to all connections, present and future, until the next call.
func (l *Proxy) Make(f Fault) { l.fault.Store(&f) }

// Mend ends the fault. A silenced connection stays silent, as on a real line.
func (l *Proxy) Mend() { l.Make(Fault{}) }

// Disturbed returns the number of connections that faults have ended or silenced.
func (l *Proxy) Disturbed() int64 { return l.disturbed.Load() }

// HangUp closes all present connections.
func (l *Proxy) HangUp() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.calls {
		c.close(false)
	}
}

// Unplug closes all connections and refuses new ones until Plug.
func (l *Proxy) Unplug() {
	l.mu.Lock()
	l.down = true
	l.mu.Unlock()
	l.HangUp()
}

// Plug accepts connections again.
func (l *Proxy) Plug() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = false
}

// Swizzle applies one fault after another, each for a random part of most, until ctx ends. Then it
// mends the line. The same random source gives the same faults.
func (l *Proxy) Swizzle(ctx context.Context, random *rand.Rand, most time.Duration) {
	defer l.Mend()
	for ctx.Err() == nil {
		l.Make(Fault{
			Kind:  append([]Kind{Fine}, Kinds...)[random.IntN(len(Kinds)+1)],
			After: random.Int64N(4 << 10),
			Delay: time.Duration(1+random.IntN(20)) * time.Millisecond,
		})
		pause := time.NewTimer(time.Duration(random.Int64N(int64(most))))
		select {
		case <-ctx.Done():
		case <-pause.C:
		}
		pause.Stop()
	}
}

func (l *Proxy) serve() {
	var all sync.WaitGroup
	defer all.Wait()
	for {
		near, err := l.listener.Accept()
		if err != nil {
			return
		}
		all.Go(func() { l.connect(near) })
	}
}

func (l *Proxy) connect(near net.Conn) {
	far, err := new(net.Dialer).Dial(l.network, l.target)
	if err != nil {
		_ = near.Close()
		return
	}
	c := &call{near: near, far: far, line: l, ended: make(chan struct{})}
	if !l.add(c) {
		c.close(true)
		return
	}
	defer l.remove(c)
	var both sync.WaitGroup
	both.Go(func() { c.pass(far, near, true) })
	both.Go(func() { c.pass(near, far, false) })
	both.Wait()
}

func (l *Proxy) add(c *call) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls[c] = true
	return !l.down
}

func (l *Proxy) remove(c *call) {
	c.close(false)
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.calls, c)
}

// call is one connection through the proxy.
type call struct {
	near, far net.Conn
	line      *Proxy
	once      sync.Once
	ended     chan struct{}

	// since counts the bytes that the caller has sent under the present fault.
	mu    sync.Mutex
	fault *Fault
	since int64
}

// pass copies one direction until the connection ends. asking is the direction from the caller.
func (c *call) pass(to io.Writer, from io.Reader, asking bool) {
	defer c.close(false)
	buffer := make([]byte, 16<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && !c.forward(to, buffer[:n], asking) {
			return
		}
		if err != nil {
			return
		}
	}
}

// forward passes a piece under the present fault. It returns false if the connection has ended.
func (c *call) forward(to io.Writer, piece []byte, asking bool) bool {
	fault, left := c.state(int64(len(piece)), asking)
	switch fault.Kind {
	case Fine:
	case Late:
		if !c.wait(fault.Delay) {
			return false
		}
	case Drip:
		return c.drip(to, piece, fault.Delay)
	case Deaf:
		if !asking {
			c.line.disturbed.Add(1)
			return false
		}
	case Cut, Reset, Silent:
		if left >= int64(len(piece)) {
			break
		}
		if asking {
			_, _ = to.Write(piece[:max(left, 0)]) // the connection ends in any case
		}
		c.line.disturbed.Add(1)
		if fault.Kind == Silent {
			<-c.ended
		}
		c.close(fault.Kind == Reset)
		return false
	}
	_, err := to.Write(piece)
	return err == nil
}

// state returns the present fault and how many bytes may pass before it begins.
func (c *call) state(size int64, asking bool) (Fault, int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.line.fault.Load(); now != c.fault {
		c.fault, c.since = now, 0
	}
	left := c.fault.After - c.since
	if asking {
		c.since += size
	} else if left > 0 {
		left = size
	}
	return *c.fault, left
}

func (c *call) drip(to io.Writer, piece []byte, apart time.Duration) bool {
	for len(piece) > 0 {
		n := min(len(piece), dripSize)
		if _, err := to.Write(piece[:n]); err != nil || !c.wait(apart) {
			return false
		}
		piece = piece[n:]
	}
	return true
}

func (c *call) wait(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-c.ended:
		return false
	}
}

// close closes both connections; hard sends a reset.
func (c *call) close(hard bool) {
	c.once.Do(func() {
		for _, side := range []net.Conn{c.near, c.far} {
			if tcp, ok := side.(*net.TCPConn); ok && hard {
				_ = tcp.SetLinger(0)
			}
			_ = side.Close()
		}
		close(c.ended)
	})
}
