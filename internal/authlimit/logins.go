package authlimit

import (
	"crypto/sha256"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// accountAtOnce is the number of wrong passwords of an account at once; one more is allowed per
	// accountEvery.
	accountAtOnce = 10
	accountEvery  = 30 * time.Second
)

// Logins limits wrong passwords by client address and by account. An address that proved the password of an
// account keeps its access to this account, so wrong passwords of others do not lock it out. It is safe for
// concurrent use.
type Logins struct {
	mu       sync.Mutex
	from     recent[[sha256.Size]byte, *rate.Limiter]
	accounts recent[[sha256.Size]byte, *rate.Limiter]
	proved   recent[[sha256.Size]byte, struct{}]
}

// Wait returns how long an address must wait before its next attempt for an account; 0 if it may try now.
func (l *Logins) Wait(remote, account string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.proved.get(pair(remote, account)); ok {
		return 0
	}
	return max(missing(&l.from, digest(source(remote).String()), perSecond), missing(&l.accounts, digest(name(account)), 1/accountEvery.Seconds()))
}

// Failed counts a wrong password.
func (l *Logins) Failed(remote, account string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	count(&l.from, digest(source(remote).String()), rate.NewLimiter(perSecond, atOnce))
	count(&l.accounts, digest(name(account)), rate.NewLimiter(rate.Every(accountEvery), accountAtOnce))
	// A wrong password ends the trust in the address.
	l.proved.forget(pair(remote, account))
}

// Succeeded remembers that an address proved the password of an account.
func (l *Logins) Succeeded(remote, account string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.proved.put(pair(remote, account), struct{}{})
}

func missing(of *recent[[sha256.Size]byte, *rate.Limiter], key [sha256.Size]byte, perSecond float64) time.Duration {
	limiter, ok := of.get(key)
	if !ok {
		return 0
	}
	return time.Duration(max(0, 1-limiter.Tokens()) / perSecond * float64(time.Second))
}

func count(of *recent[[sha256.Size]byte, *rate.Limiter], key [sha256.Size]byte, fresh *rate.Limiter) {
	limiter, ok := of.get(key)
	if !ok {
		limiter = fresh
		of.put(key, limiter)
	}
	limiter.Allow()
}

func name(account string) string { return strings.ToLower(strings.TrimSpace(account)) }

func pair(remote, account string) [sha256.Size]byte {
	return digest(source(remote).String() + "\n" + name(account))
}

func digest(text string) [sha256.Size]byte { return sha256.Sum256([]byte(text)) }

func (r *recent[K, V]) forget(key K) {
	delete(r.young, key)
	delete(r.old, key)
}
