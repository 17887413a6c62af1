// Package authlimit rate-limits failed authentication by client address.
//
// Only failures count. A secret that succeeded recently passes whatever its address did, so a valid
// client is not slowed by another client behind the same address.
package authlimit

import (
	"crypto/sha256"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"path"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"autopost/internal/problem"
)

const (
	// atOnce is the number of failures that an address may make at once; perSecond is how many of them
	// expire per second.
	atOnce, perSecond = 30, 1
	// mostDebt bounds the failures that count beyond atOnce, and so the wait.
	mostDebt = 60
	// kept is the minimum number of addresses, and of valid secrets, that are remembered. The maximum
	// is twice as many.
	kept = 10_000
)

// Limit is an http.Handler that answers 429 to addresses with too many failures. It is safe for
// concurrent use.
type Limit struct {
	next http.Handler
	log  *slog.Logger

	mu   sync.Mutex
	from recent[netip.Prefix, *address]
	good recent[[sha256.Size]byte, struct{}]
}

// address is the state of an address with failures.
type address struct {
	failures *rate.Limiter
	// logged: the log has a line about the current refusal.
	logged bool
}

// New returns a limit in front of next.
func New(next http.Handler, log *slog.Logger) *Limit {
	return &Limit{next: next, log: log}
}

// ServeHTTP rejects the request, or passes it on and counts its result.
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

// wait returns how long an address must wait before its next attempt; 0 if it may try now or the secret
// is known to be valid.
func (l *Limit) wait(from netip.Prefix, secret [sha256.Size]byte) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	known, ok := l.from.get(from)
	if !ok {
		return 0
	}
	missing := 1 - known.failures.Tokens()
	if missing <= 0 {
		known.logged = false
		return 0
	}
	if _, good := l.good.get(secret); good {
		return 0
	}
	if !known.logged {
		known.logged = true
		l.log.Warn("http.address_limited", "address", from.String())
	}
	return time.Duration(missing / perSecond * float64(time.Second))
}

// learn counts a result. Only a success proves that the handler checked the secret.
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

// source returns the client's address, for IPv6 its /64 network.
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
	prefix, _ := addr.Prefix(bits) // bits is within the address length
	return prefix
}

// secretOf returns a digest of the secret headers. For hooks it includes the path, because a signed
// hook has no secret in a header.
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
	seconds := problem.RetryAfter(w, wait)
	problem.Quota{Name: "wrong-secrets", Most: atOnce, Window: atOnce / perSecond * time.Second, Reset: wait}.Show(w)
	problem.Write(w, problem.WrongSecrets.Says("This address has come with wrong secrets too often. Correct the secret or the signature, and try again in %d s.", seconds))
}

// answer records the status of an answer.
type answer struct {
	http.ResponseWriter

	status int
}

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

// Unwrap gives http.ResponseController access to the wrapped writer.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// recent remembers the entries that were used last, in two halves. The older half is dropped as a
// whole.
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
