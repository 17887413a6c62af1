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

// Never is the delay of a dead platform: it accepts calls and does not answer.
const Never time.Duration = -1

// Arrival is a received call.
type Arrival struct {
	// Token is the bot token.
	Token string
	// At is the time after its headers were read.
	At time.Time
	// Body is the request body.
	Body string
}

// Platform answers like Telegram, MAX and X.
type Platform struct {
	// URL is its base URL.
	URL string

	server *http.Server
	served atomic.Int64

	mu       sync.Mutex
	arrivals []Arrival
	delay    time.Duration
	// changed is closed by the next arrival, eased by the next change of the delay.
	changed, eased chan struct{}
}

// NewPlatform listens on a free loopback port. The caller must close it.
func NewPlatform(ctx context.Context) (*Platform, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the platform: %w", err)
	}
	p := &Platform{URL: "http://" + listener.Addr().String(), changed: make(chan struct{}), eased: make(chan struct{})}
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = p.server.Serve(listener) }() // ends by Close
	return p, nil
}

// Close ends all calls.
func (p *Platform) Close() error { return p.server.Close() }

// Delay sets the delay of answers. Waiting calls are answered at once.
func (p *Platform) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
	close(p.eased)
	p.eased = make(chan struct{})
}

// Reset removes the recorded calls.
func (p *Platform) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.arrivals = nil
}

// Calls returns the number of recorded calls.
func (p *Platform) Calls() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.arrivals)
}

// Arrivals waits for at least n calls with a token and returns them in their order. An empty
// token means any.
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
			return nil, fmt.Errorf("%d of %d calls arrived: %w", len(found), n, ctx.Err())
		}
	}
}

// answer contains the answers of Telegram, MAX and X. Each adapter reads its own fields.
const answer = `{"ok":true,"result":{"message_id":%[1]d,"date":%[2]d},"message":{"timestamp":%[2]d000,"body":{"mid":"mid.%[1]d"}},"data":{"id":"%[1]d"}}`

// ServeHTTP accepts POST /bot<token>/<method>, and any other path without a token.
func (p *Platform) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at := time.Now()
	var token string
	if bot, ok := strings.CutPrefix(r.URL.Path, "/bot"); ok {
		token, _, _ = strings.Cut(bot, "/")
	}
	body, _ := io.ReadAll(r.Body) // the body is not checked
	if !p.wait(r.Context(), Arrival{Token: token, At: at, Body: string(body)}) {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, answer, p.served.Add(1), at.Unix())
}

// wait records a call and waits for the delay. It returns false if the client has gone.
func (p *Platform) wait(ctx context.Context, a Arrival) bool {
	p.mu.Lock()
	p.arrivals = append(p.arrivals, a)
	close(p.changed)
	p.changed = make(chan struct{})
	delay, eased := p.delay, p.eased
	p.mu.Unlock()
	var due <-chan time.Time // nil means never
	if delay == 0 {
		return true
	} else if delay > 0 {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-due:
	case <-eased:
	case <-ctx.Done():
		return false
	}
	return true
}
