package sim

import (
	"math"
	"sync"
	"time"
)

// Rate is a token bucket limit: PerSecond tokens are added per second, up to Burst (at least 1).
// PerSecond 0 means no limit.
type Rate struct {
	PerSecond float64
	Burst     float64
}

// Claim names a bucket and its limit.
type Claim struct {
	Key  string
	Rate Rate
}

// Buckets are token buckets by key, on the wall clock. The zero value is ready. It is safe for
// concurrent use.
type Buckets struct {
	mu      sync.Mutex
	buckets map[string]*bucket
}

type bucket struct {
	level float64
	at    time.Time
}

// Take takes cost tokens from all claims, or from none. It returns 0, or the wait after which the same
// request would succeed. A full bucket grants a cost above its burst and then has a negative level.
func (b *Buckets) Take(cost int, claims ...Claim) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.buckets == nil {
		b.buckets = map[string]*bucket{}
	}
	now := time.Now()
	var wait time.Duration
	for _, c := range claims {
		if c.Rate.PerSecond <= 0 {
			continue
		}
		burst := max(1, c.Rate.Burst)
		k := b.buckets[c.Key]
		if k == nil {
			k = &bucket{level: burst, at: now}
			b.buckets[c.Key] = k
		}
		k.level = min(burst, k.level+now.Sub(k.at).Seconds()*c.Rate.PerSecond)
		k.at = now
		// The tolerance covers rounding: a client that waited as long as it was asked must pass.
		if missing := min(float64(cost), burst) - k.level; missing > 1e-6 {
			wait = max(wait, time.Duration(math.Ceil(missing/c.Rate.PerSecond*float64(time.Second))))
		}
	}
	if wait > 0 {
		return wait
	}
	for _, c := range claims {
		if c.Rate.PerSecond > 0 {
			b.buckets[c.Key].level -= float64(cost)
		}
	}
	return 0
}

// Reset fills all buckets.
func (b *Buckets) Reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.buckets = nil
}
