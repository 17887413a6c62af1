package telemetry

import (
	"context"
	"encoding/hex"
	"strings"
	"sync/atomic"
	"time"

	"autopost"
)

// Attempt follows one claimed delivery through a daemon. It belongs to one goroutine
// at a time.
type Attempt struct {
	autopost.Delivery
	// Claimed, Asked, Began, Answered and Committed are when it was claimed, when it was asked whether its call may begin, when
	// the call began and ended, and when its outcome was committed; zero where it did not come to that.
	Claimed, Asked, Began, Answered, Committed time.Time
	// Limited says that the call had a rate slot, Late how long after it the call began.
	Limited bool
	Late    time.Duration
	// Outcome is what the call came to; Status what the delivery is after the commit, "" when that was not to be had, and Applied whether
	// the commit changed it.
	Outcome autopost.Outcome
	Status  string
	Applied bool

	media atomic.Int64 // bytes of the media that were opened for the platform
}

// Called notes that the call of the platform, which began at that time, is over.
func (a *Attempt) Called(began time.Time, late time.Duration, limited bool) {
	a.Began, a.Answered, a.Late, a.Limited = began, time.Now(), late, limited
}

// Ended notes what the attempt came to: the delivery with its acknowledged steps, the outcome, and the
// answer of its commit, or err where there was none.
func (a *Attempt) Ended(d autopost.Delivery, outcome autopost.Outcome, status string, applied bool, err error) {
	a.Delivery, a.Outcome, a.Status, a.Applied = d, outcome, status, applied
	if err == nil {
		a.Committed = time.Now()
	}
}

// Weigh counts what is read of the media.
func (a *Attempt) Weigh(m autopost.Materials) autopost.Materials { return weighed{m, a} }

type weighed struct {
	autopost.Materials

	attempt *Attempt
}

func (w weighed) Open(ctx context.Context, blobRef string) (*autopost.Content, error) {
	content, err := w.Materials.Open(ctx, blobRef)
	if err == nil {
		w.attempt.media.Add(content.Size)
	}
	return content, err
}

// Waited is how long the delivery was due when it was claimed.
func (a *Attempt) Waited() time.Duration {
	if a.DueAt.IsZero() {
		return 0
	}
	return max(0, a.Claimed.Sub(a.DueAt))
}

// From is when the post could have been there at the soonest: when it was taken, which its
// trace_id says (a UUID version 7 that is made then), or when it was scheduled for. Zero
// when neither is known.
func (a *Attempt) From() time.Time {
	taken := takenAt(a.TraceID)
	if a.ScheduledFor != nil && a.ScheduledFor.After(taken) {
		return *a.ScheduledFor
	}
	return taken
}

// takenAt reads the instant in a UUID version 7 (RFC 9562, 5.7: 48 bits of milliseconds); zero for any other.
func takenAt(id string) time.Time {
	raw, err := hex.DecodeString(strings.ReplaceAll(id, "-", ""))
	if err != nil || len(raw) != 16 || raw[6]>>4 != 7 {
		return time.Time{}
	}
	var millis int64
	for _, b := range raw[:6] {
		millis = millis<<8 | int64(b)
	}
	return time.UnixMilli(millis)
}

// since is the time from when the post could have gone to at; ok is false when either is not known.
func (a *Attempt) since(at time.Time) (d time.Duration, ok bool) {
	from := a.From()
	if from.IsZero() || at.IsZero() {
		return 0, false
	}
	return max(0, at.Sub(from)), true
}

// Fields are what the log line of an attempt says of its way here.
func (a *Attempt) Fields() []any {
	fields := []any{
		"auth_ref", a.AuthRef, "rate_group", a.RateGroup, "queue_age_ms", a.Waited().Milliseconds(), "batch", a.Together,
		"steps", len(a.RenderMeta.Steps), "steps_done", len(a.RenderMeta.Progress.Steps), "bytes", int64(len(a.RenderedText)) + a.media.Load(),
		"unknown_outcomes", a.UnknownOutcomes,
	}
	if d, ok := a.since(a.Began); ok {
		fields = append(fields, "accept_to_first_byte_ms", d.Milliseconds())
	}
	return fields
}

// failure is the class of an attempt's failure: few words, for a label.
func (a *Attempt) failure() string {
	e := a.Outcome.Error
	switch {
	case e == nil:
		return "none"
	case !e.Known:
		return "unknown"
	case e.RetryAfterMS > 0:
		return "limited"
	}
	return strings.ToLower(string(e.Category)) + "_" + string(e.Scope)
}

// outcome is the status that an attempt led to.
func (a *Attempt) outcome() string {
	switch {
	case a.Committed.IsZero():
		return "uncommitted"
	case !a.Applied:
		return "stale"
	}
	return a.Status
}

// Attempted says what an attempt came to.
func (w *Watch) Attempted(a *Attempt) {
	if w == nil {
		return
	}
	platform := string(a.Platform)
	w.metrics.attempts.WithLabelValues(platform, a.outcome(), a.failure()).Inc()
	if !a.Began.IsZero() {
		w.metrics.callSeconds.WithLabelValues(platform).Observe(a.Answered.Sub(a.Began).Seconds())
	}
	if d, ok := a.since(a.Began); ok && a.LastCallAt == nil { // its first call; an attempt that was handed back made none
		w.metrics.firstByte.WithLabelValues(platform).Observe(d.Seconds())
	}
	if d, ok := a.since(a.Answered); ok && a.Outcome.OK {
		w.metrics.acceptance.WithLabelValues(platform).Observe(d.Seconds())
	}
	if a.Limited {
		w.metrics.slotLate.Observe(max(0, a.Late).Seconds())
	}
	w.traces.attempted(a)
}
