// Package wire is a TCP line on loopback that can be as bad as lines are: slow, cut,
// reset in the middle, silent without an end, or cut after the request has passed and before
// its answer. Tests put it in front of PostgreSQL and of the simulated platforms.
package wire

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

// Kind is what is wrong with a line.
type Kind string

// The kinds of trouble.
const (
	// Fine is no trouble.
	Fine Kind = ""
	// Late delays each piece by Delay, both ways.
	Late Kind = "latency"
	// Drip passes a few bytes at a time, Delay apart.
	Drip Kind = "drip"
	// Cut closes both ends in order.
	Cut Kind = "cut"
	// Reset closes both ends as a crashed machine does.
	Reset Kind = "reset"
	// Silent keeps both ends open and passes nothing more.
	Silent Kind = "half-open"
	// Deaf passes what is asked, and closes when the answer comes.
	Deaf Kind = "cut after accept"
)

// Kinds are all troubles.
var Kinds = []Kind{Late, Drip, Cut, Reset, Silent, Deaf}

// Trouble is what a line does to what passes from now on.
type Trouble struct {
	Kind Kind
	// After is how many bytes still pass from the caller before it begins; for Late and Drip it counts for nothing.
	After int64
	// Delay is for Late and Drip.
	Delay time.Duration
}

// dripSize is how many bytes pass at a time on a line that drips.
const dripSize = 16

// Line is one listener and what is behind it. Its methods may be called from any goroutine.
type Line struct {
	network, target string
	listener        net.Listener
	trouble         atomic.Pointer[Trouble]
	// troubled counts the connections that a trouble has ended or silenced.
	troubled atomic.Int64

	mu    sync.Mutex
	calls map[*call]bool
	down  bool
}

// Open makes a line to target until the test ends.
func Open(t testing.TB, network, target string) *Line {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l := &Line{network: network, target: target, listener: listener, calls: map[*call]bool{}}
	l.trouble.Store(&Trouble{})
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

// Addr is where the line listens: host and port.
func (l *Line) Addr() string { return l.listener.Addr().String() }

// Make makes trouble on all connections, old and new, until another is made.
func (l *Line) Make(t Trouble) { l.trouble.Store(&t) }

// Mend ends the trouble. What was silenced stays silent, as it does on a real line.
func (l *Line) Mend() { l.Make(Trouble{}) }

// Troubled tells how many connections were ended or silenced so far.
func (l *Line) Troubled() int64 { return l.troubled.Load() }

// HangUp closes all connections of this moment.
func (l *Line) HangUp() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.calls {
		c.close(false)
	}
}

// Unplug refuses connections, and ends those there are, until Plug.
func (l *Line) Unplug() {
	l.mu.Lock()
	l.down = true
	l.mu.Unlock()
	l.HangUp()
}

// Plug ends Unplug.
func (l *Line) Plug() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = false
}

// Swizzle makes one trouble after another, each for a random part of most, until ctx
// ends; then it mends. The same random gives the same troubles.
func (l *Line) Swizzle(ctx context.Context, random *rand.Rand, most time.Duration) {
	defer l.Mend()
	for ctx.Err() == nil {
		l.Make(Trouble{
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

func (l *Line) serve() {
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

func (l *Line) connect(near net.Conn) {
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

func (l *Line) add(c *call) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls[c] = true
	return !l.down
}

func (l *Line) remove(c *call) {
	c.close(false)
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.calls, c)
}

// call is one connection through the line.
type call struct {
	near, far net.Conn
	line      *Line
	once      sync.Once
	ended     chan struct{}

	// since counts what the caller has sent since trouble became what it is.
	mu      sync.Mutex
	trouble *Trouble
	since   int64
}

// pass copies one way until the connection is over. asking is the caller's way.
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

// forward passes a piece on, as well as the line does just now.
func (c *call) forward(to io.Writer, piece []byte, asking bool) bool {
	trouble, left := c.state(int64(len(piece)), asking)
	switch trouble.Kind {
	case Fine:
	case Late:
		if !c.wait(trouble.Delay) {
			return false
		}
	case Drip:
		return c.drip(to, piece, trouble.Delay)
	case Deaf:
		if !asking {
			c.line.troubled.Add(1)
			return false
		}
	case Cut, Reset, Silent:
		if left >= int64(len(piece)) {
			break
		}
		if asking {
			_, _ = to.Write(piece[:max(left, 0)]) // the end is near in any case
		}
		c.line.troubled.Add(1)
		if trouble.Kind == Silent {
			<-c.ended
		}
		c.close(trouble.Kind == Reset)
		return false
	}
	_, err := to.Write(piece)
	return err == nil
}

// state tells the present trouble, and how much of a piece may pass before it begins.
func (c *call) state(size int64, asking bool) (Trouble, int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.line.trouble.Load(); now != c.trouble {
		c.trouble, c.since = now, 0
	}
	left := c.trouble.After - c.since
	if asking {
		c.since += size
	} else if left > 0 {
		left = size
	}
	return *c.trouble, left
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

// close ends both sides; hard makes the peers see a reset.
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
