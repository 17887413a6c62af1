package sim

import (
	"fmt"
	"math"
	"sync/atomic"
	"time"
)

// Pace shortens or stretches the platforms' periods: windows of rate limits,
// lives of tokens, processing. The clock stays the wall clock, so that instants
// in answers remain true. The zero value keeps every period as it is; it is safe
// for concurrent use.
type Pace struct {
	bits atomic.Uint64
}

// Set makes every period of the platforms factor times as long, from now on.
// The factor is from 0.000001 to 1000.
func (p *Pace) Set(factor float64) error {
	if !(factor >= 1e-6 && factor <= 1000) {
		return fmt.Errorf("pace %v is not from 0.000001 to 1000", factor)
	}
	p.bits.Store(math.Float64bits(factor))
	return nil
}

// Factor is how long a period is against the platform's own.
func (p *Pace) Factor() float64 {
	if bits := p.bits.Load(); bits != 0 {
		return math.Float64frombits(bits)
	}
	return 1
}

// Of is how long a platform's period d takes.
func (p *Pace) Of(d time.Duration) time.Duration {
	return time.Duration(float64(d) * p.Factor())
}

// Seconds is Of in whole seconds, rounded up, as answers state it.
func (p *Pace) Seconds(d time.Duration) int {
	return int(math.Ceil(p.Of(d).Seconds()))
}
