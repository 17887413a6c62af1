package worker

import "time"

// Rest is a pause after work that is not urgent, so that urgent work gets the processors. More work is merged
// meanwhile. On a busy machine the same work takes longer, and so does its pause.
type Rest struct {
	// Times is the length of the pause in durations of the work; 0 means no pause.
	Times int
	// Most is the longest pause.
	Most time.Duration
}

// After returns the pause after work that took so long.
func (r Rest) After(took time.Duration) time.Duration {
	return min(time.Duration(r.Times)*took, r.Most)
}
