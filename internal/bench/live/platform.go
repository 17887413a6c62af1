package live

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Arrival is a call that a platform got.
type Arrival struct {
	// Token is the bot's.
	Token string
	// At is when its headers had been read.
	At time.Time
}

// Platform answers as Telegram does.
type Platform struct {
	// URL is its base URL.
	URL string

	server *http.Server
	served atomic.Int64

	mu       sync.Mutex
	arrivals []Arrival
	hanging  map[string]bool
	changed  chan struct{}
}

// NewPlatform listens on a free port of the loopback. Close it.
func NewPlatform(ctx context.Context) (*Platform, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the platform: %w", err)
	}
	p := &Platform{URL: "http://" + listener.Addr().String(), hanging: map[string]bool{}, changed: make(chan struct{})}
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = p.server.Serve(listener) }() // ends by Close
	return p, nil
}

// Close ends all calls.
func (p *Platform) Close() error { return p.server.Close() }

// Hang never answers calls with a token from now on.
func (p *Platform) Hang(token string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hanging[token] = true
}

// Reset forgets what came.
func (p *Platform) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.arrivals = nil
}

// Arrivals waits for at least n calls with a token, "" for any, and returns them in their order.
func (p *Platform) Arrivals(ctx context.Context, token string, n int) ([]Arrival, error) {
	for {
		p.mu.Lock()
		changed := p.changed
		var found []Arrival
		if token == "" {
			found = p.arrivals
		} else {
			for _, a := range p.arrivals {
				if a.Token == token {
					found = append(found, a)
				}
			}
		}
		p.mu.Unlock()
		if len(found) >= n {
			return found, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("%d of %d calls came: %w", len(found), n, ctx.Err())
		}
	}
}

// ServeHTTP takes POST /bot<token>/<method>.
func (p *Platform) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at := time.Now()
	token, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/bot"), "/")
	hangs := p.arrive(Arrival{Token: token, At: at})
	_, _ = io.Copy(io.Discard, r.Body) // whatever is in it
	if hangs {
		<-r.Context().Done()
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"ok":true,"result":{"message_id":%d,"date":%d}}`, p.served.Add(1), at.Unix())
}

func (p *Platform) arrive(a Arrival) (hangs bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.arrivals = append(p.arrivals, a)
	close(p.changed)
	p.changed = make(chan struct{})
	return p.hanging[a.Token]
}
