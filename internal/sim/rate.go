package sim

import (
	"math"
	"sync"
	"time"
)

// Rate is a limit as a token bucket: PerSecond refills, Burst is what it holds
// (at least 1). A PerSecond of 0 is no limit.
type Rate struct {
	PerSecond float64
	Burst     float64
}

// Claim asks for a share of one limit.
type Claim struct {
	Key  string
	Rate Rate
}

// Buckets are token buckets by key, on the wall clock. The zero value is ready;
// it is safe for concurrent use.
type Buckets struct {
	mu      sync.Mutex
	buckets map[string]*bucket
}

type bucket struct {
	level float64
	at    time.Time
}

// Take takes cost from all claims together or from none. It returns 0, or the
// time after which the same request could be granted. A cost above the burst
// is granted by a full bucket, which then is in debt.
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
		// A nanosecond's worth of rounding must not refuse who waited as long as told.
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
