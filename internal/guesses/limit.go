// Package guesses bounds how often an address may come with a secret that is none.
//
// Failures alone are counted, and a secret that was good lately passes whatever its
// address has done: who knows one is never slowed by a neighbour who guesses.
package guesses

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/netip"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// atOnce is how many failures of an address are answered as what they are, perSecond how many are forgiven
	// in a second.
	atOnce, perSecond = 30, 1
	// mostDebt is how many more, of requests that came all at once, an address has to wait for.
	mostDebt = 60
	// kept is how many addresses, and how many good secrets, are remembered at least; at most twice as many.
	kept = 10_000
)

// Limit answers 429 in the place of a handler to addresses that failed too often. It is safe for concurrent use.
type Limit struct {
	next http.Handler
	log  *slog.Logger

	mu   sync.Mutex
	from recent[netip.Prefix, *address]
	good recent[[sha256.Size]byte, struct{}]
}

// address is what is known of one that has failed.
type address struct {
	failures *rate.Limiter
	// told says that the log has been told that it is refused.
	told bool
}

// New makes the limit before next.
func New(next http.Handler, log *slog.Logger) *Limit {
	return &Limit{next: next, log: log}
}

// ServeHTTP lets a request through, and learns from its answer, or refuses it.
func (l *Limit) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at := path.Clean("/" + r.URL.Path)
	if at != "/api" && !strings.HasPrefix(at, "/api/") && !strings.HasPrefix(at, "/hooks/") {
		l.next.ServeHTTP(w, r)
		return
	}
	from, secret := source(r.RemoteAddr), secretOf(r.Header, at)
	if wait := l.wait(from, secret); wait > 0 {
		refuse(w, wait)
		return
	}
	answer := &answer{ResponseWriter: w, status: http.StatusOK}
	l.next.ServeHTTP(answer, r)
	l.learn(from, secret, answer.status)
}

// wait is how long an address has to wait before it may come with a secret that is not known to be good.
func (l *Limit) wait(from netip.Prefix, secret [sha256.Size]byte) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	known, ok := l.from.get(from)
	if !ok {
		return 0
	}
	missing := 1 - known.failures.Tokens()
	if missing <= 0 {
		known.told = false
		return 0
	}
	if _, good := l.good.get(secret); good {
		return 0
	}
	if !known.told {
		known.told = true
		l.log.Warn("http.address_limited", "address", from.String())
	}
	return time.Duration(missing / perSecond * float64(time.Second))
}

// learn keeps what an answer says: only of a success it is certain that the secret was looked at, and good.
func (l *Limit) learn(from netip.Prefix, secret [sha256.Size]byte, status int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case status < http.StatusMultipleChoices:
		if _, good := l.good.get(secret); !good {
			l.good.put(secret, struct{}{})
		}
	case status == http.StatusUnauthorized:
		known, ok := l.from.get(from)
		if !ok {
			known = &address{failures: rate.NewLimiter(perSecond, atOnce)}
			l.from.put(from, known)
		}
		if known.failures.Tokens() > -mostDebt {
			known.failures.Reserve()
		}
	}
}

// source is the address of a peer; in IPv6 the network that a customer is given.
func source(remote string) netip.Prefix {
	peer, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Prefix{}
	}
	addr := peer.Addr().Unmap().WithZone("")
	bits := addr.BitLen()
	if addr.Is6() {
		bits = 64
	}
	prefix, _ := addr.Prefix(bits) // of an address there is always one this long
	return prefix
}

// secretOf stands for what a request is known by: a secret in a header, and of a hook the path, by which alone a
// signed one names its endpoint.
func secretOf(h http.Header, at string) (sum [sha256.Size]byte) {
	if !strings.HasPrefix(at, "/hooks/") {
		at = "/api"
	}
	hash := sha256.New()
	for _, part := range []string{at, h.Get("Authorization"), h.Get("X-Telegram-Bot-Api-Secret-Token"), h.Get("X-Max-Bot-Api-Secret")} {
		_, _ = io.WriteString(hash, part+"\n") // never fails; no header holds a line feed
	}
	hash.Sum(sum[:0])
	return sum
}

func refuse(w http.ResponseWriter, wait time.Duration) {
	seconds := max(1, int(math.Ceil(wait.Seconds())))
	w.Header().Set("Retry-After", strconv.Itoa(seconds))
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(http.StatusTooManyRequests)
	// A caller that is gone cannot be told so.
	_ = json.NewEncoder(w).Encode(map[string]any{
		"type": "urn:autopost:problem:wrong-secrets", "title": "Too many wrong secrets", "status": http.StatusTooManyRequests,
		"detail": fmt.Sprintf("This address has come with wrong secrets too often. Correct the secret or the signature, and try again in %d s.", seconds),
	})
}

// answer remembers the status of an answer.
type answer struct {
	http.ResponseWriter

	status int
}

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach what is behind.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// recent keeps what was put in or asked for last, in two halves of which the older is let go as a whole.
type recent[K comparable, V any] struct{ young, old map[K]V }

func (r *recent[K, V]) get(key K) (V, bool) {
	value, ok := r.young[key]
	if ok {
		return value, true
	}
	if value, ok = r.old[key]; ok {
		r.put(key, value)
	}
	return value, ok
}

func (r *recent[K, V]) put(key K, value V) {
	if r.young == nil || len(r.young) >= kept {
		r.young, r.old = map[K]V{}, r.young
	}
	r.young[key] = value
}
