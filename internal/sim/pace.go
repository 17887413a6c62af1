package sim

import (
	"fmt"
	"math"
	"sync/atomic"
	"time"
)

// Pace scales the platforms' periods: rate-limit windows, token lifetimes, processing times. The clock
// stays the wall clock, so that times in answers are true. The zero value changes nothing. It is safe
// for concurrent use.
type Pace struct {
	bits atomic.Uint64
}

// Set multiplies every period by factor from now on. factor must be from 0.000001 to 1000.
func (p *Pace) Set(factor float64) error {
	if !(factor >= 1e-6 && factor <= 1000) {
		return fmt.Errorf("factor must be 0.000001 to 1000, got %v", factor)
	}
	p.bits.Store(math.Float64bits(factor))
	return nil
}

// Factor returns the current factor.
func (p *Pace) Factor() float64 {
	if bits := p.bits.Load(); bits != 0 {
		return math.Float64frombits(bits)
	}
	return 1
}

// Of returns the scaled duration of a platform's period d.
func (p *Pace) Of(d time.Duration) time.Duration {
	return time.Duration(float64(d) * p.Factor())
}

// Seconds is Of in whole seconds, rounded up.
func (p *Pace) Seconds(d time.Duration) int {
	return int(math.Ceil(p.Of(d).Seconds()))
}
