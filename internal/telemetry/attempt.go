package telemetry

import (
	"context"
	"encoding/hex"
	"strings"
	"sync/atomic"
	"time"

	"autopost"
)

// Attempt collects the times and results of one claimed delivery. Only one goroutine at a time may use it.
type Attempt struct {
	autopost.Delivery
	// Claimed, Asked, Began, Answered and Committed are the times of the claim, of the start request, of the start and
	// the end of the call, and of the commit; zero if the attempt did not get so far.
	Claimed, Asked, Began, Answered, Committed time.Time
	// Limited means that the call had a slot; Late is how long after the slot it started.
	Limited bool
	Late    time.Duration
	// Status is the delivery's status after the commit, "" if unknown; Applied is false if the commit was stale.
	Outcome autopost.Outcome
	Status  string
	Applied bool

	media atomic.Int64 // bytes of the media that were opened for the platform
}

// Called records the end of the call that started at began.
func (a *Attempt) Called(began time.Time, late time.Duration, limited bool) {
	a.Began, a.Answered, a.Late, a.Limited = began, time.Now(), late, limited
}

// Ended records the delivery with its acknowledged steps, the outcome, and the answer of the commit, or err if there was
// no answer.
func (a *Attempt) Ended(d autopost.Delivery, outcome autopost.Outcome, status string, applied bool, err error) {
	a.Delivery, a.Outcome, a.Status, a.Applied = d, outcome, status, applied
	if err == nil {
		a.Committed = time.Now()
	}
}

// Weigh counts the bytes of media that the adapter opens.
func (a *Attempt) Weigh(m autopost.MediaAccess) autopost.MediaAccess { return weighed{m, a} }

type weighed struct {
	autopost.MediaAccess

	attempt *Attempt
}

func (w weighed) Open(ctx context.Context, blobRef string) (*autopost.Content, error) {
	content, err := w.MediaAccess.Open(ctx, blobRef)
	if err == nil {
		w.attempt.media.Add(content.Size)
	}
	return content, err
}

// Waited is the time from when the delivery was due to its claim.
func (a *Attempt) Waited() time.Duration {
	if a.DueAt.IsZero() {
		return 0
	}
	return max(0, a.Claimed.Sub(a.DueAt))
}

// From is the earliest possible time of the post: its acceptance, which its trace_id holds (a UUID version 7), or its
// scheduled time if that is later. It is zero if neither is known.
func (a *Attempt) From() time.Time {
	accepted := acceptedAt(a.TraceID)
	if a.ScheduledFor != nil && a.ScheduledFor.After(accepted) {
		return *a.ScheduledFor
	}
	return accepted
}

// acceptedAt reads the time of a UUID version 7 (RFC 9562, 5.7: 48 bits of milliseconds); zero for any other.
func acceptedAt(id string) time.Time {
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

// since is the time from From to at; ok is false if either is unknown.
func (a *Attempt) since(at time.Time) (d time.Duration, ok bool) {
	from := a.From()
	if from.IsZero() || at.IsZero() {
		return 0, false
	}
	return max(0, at.Sub(from)), true
}

// Fields are the log fields of an attempt.
func (a *Attempt) Fields() []any {
	fields := []any{
		"auth_ref", a.AuthRef, "rate_group", a.RateGroup, "queue_age_ms", a.Waited().Milliseconds(), "batch", a.ClaimSize,
		"steps", len(a.RenderMeta.Steps), "steps_done", len(a.RenderMeta.Progress.Steps), "bytes", int64(len(a.RenderedText)) + a.media.Load(),
		"unknown_outcomes", a.UnknownOutcomes,
	}
	if d, ok := a.since(a.Began); ok {
		fields = append(fields, "accept_to_first_byte_ms", d.Milliseconds())
	}
	return fields
}

// failure is the class of an attempt's failure, a label with few values.
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

// outcome is the delivery's status after the attempt.
func (a *Attempt) outcome() string {
	switch {
	case a.Committed.IsZero():
		return "uncommitted"
	case !a.Applied:
		return "stale"
	}
	return a.Status
}

// Attempted records a finished attempt.
func (r *Recorder) Attempted(a *Attempt) {
	if r == nil {
		return
	}
	platform := string(a.Platform)
	r.metrics.attempts.WithLabelValues(platform, a.outcome(), a.failure()).Inc()
	if !a.Began.IsZero() {
		r.metrics.callSeconds.WithLabelValues(platform).Observe(a.Answered.Sub(a.Began).Seconds())
	}
	if d, ok := a.since(a.Began); ok && a.LastCallAt == nil { // the first call; a released attempt made none
		r.metrics.firstByte.WithLabelValues(platform).Observe(d.Seconds())
	}
	if d, ok := a.since(a.Answered); ok && a.Outcome.OK {
		r.metrics.acceptance.WithLabelValues(platform).Observe(d.Seconds())
	}
	if a.Limited {
		r.metrics.slotLate.Observe(max(0, a.Late).Seconds())
	}
	r.traces.attempted(a)
}

// Replied records a finished attempt for a message of the bot. Its trace_id holds the receipt of what it answers.
func (r *Recorder) Replied(a *Attempt) {
	if r == nil {
		return
	}
	platform := string(a.Platform)
	r.metrics.replies.WithLabelValues(platform, a.outcome(), a.failure()).Inc()
	if d, ok := a.since(a.Answered); ok && a.Outcome.OK {
		r.metrics.replySeconds.WithLabelValues(platform).Observe(d.Seconds())
	}
}
