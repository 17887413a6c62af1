package web

import (
	"fmt"
	"strings"
	"time"
)

// mark is a point of the timeline of a delivery: an attempt, an act of a person, or the next attempt.
type mark struct {
	Class, Icon, Words string
	// At is nil for a moment that is not known.
	At *time.Time
	// Gap is the time since the mark before.
	Gap string
	// Details are the code and the message of an error.
	Details string

	attempt int
}

// mostMarks is how many marks a timeline shows; those in the middle are left out.
const mostMarks = 8

// marks is the timeline of an explained delivery.
func (v *view) marks(r postRow) (all []mark) {
	for _, s := range r.Why.Chain {
		all = v.addStep(all, s)
	}
	if isWaiting(r.Status) {
		all = append(all, v.nextMark(r))
	}
	for i := range all {
		if i > 0 && all[i].At != nil && all[i-1].At != nil {
			all[i].Gap = v.span(all[i].At.Sub(*all[i-1].At))
		}
	}
	if over := len(all) - mostMarks; over > 0 {
		left := mark{Class: "next", Icon: "more", Words: v.n("attempt.more", over+1)}
		all = append(append(append([]mark{}, all[:2]...), left), all[3+over:]...)
	}
	return all
}

// addStep adds a step of the history: the outcome of an attempt belongs to the mark of its beginning.
func (v *view) addStep(all []mark, s step) []mark {
	m := mark{At: &s.TS, attempt: s.Attempt}
	switch s.Action {
	case "send_attempt":
		m.Class, m.Icon, m.Words = "run", "send", v.t("attempt.is", s.Attempt, v.t("attempt.runs"))
		return append(all, m)
	case "sent":
		m.Class, m.Icon, m.Words = "ok", "check", v.t("attempt.is", s.Attempt, v.t("attempt.sent"))
	case "retry_scheduled":
		m.Icon, m.Words = "wait", v.t("attempt.is", s.Attempt, v.failureWords(s.Error))
	case "unknown_outcome", "sending_lease_expired":
		m.Class, m.Icon, m.Words = "unsure", "unsure", v.t("attempt.is", s.Attempt, v.t("failure.unknown"))
	case "failed_permanent", "dead_letter":
		m.Class, m.Icon, m.Words = "fail", "cross", v.t("attempt.is", s.Attempt, v.failureWords(s.Error))
	case "validation_failed":
		m.Class, m.Icon, m.Words = "fail", "cross", v.failureWords(s.Error)
	case "manual_requeue":
		m.Icon, m.Words = "retry", v.t("attempt.requeued")
		return append(all, m)
	case "manual_skip":
		m.Icon, m.Words = "skip", v.t("attempt.skipped")
		return append(all, m)
	case "unknown_resolved":
		m.Icon, m.Words = "search", v.t("attempt.resolved")
		return append(all, m)
	default:
		return all
	}
	if s.Error != nil {
		m.Details = strings.TrimSuffix(s.Error.Code+": "+s.Error.Message, ": ")
	}
	if n := len(all) - 1; n >= 0 && all[n].attempt == s.Attempt && all[n].attempt > 0 {
		if s.Action == "retry_scheduled" && all[n].Class == "unsure" { // what follows an unknown outcome does not hide it
			return all
		}
		m.At = all[n].At
		all[n] = m
		return all
	}
	return append(all, m)
}

// nextMark is the next attempt of a delivery that waits, with the first reason of its wait.
func (v *view) nextMark(r postRow) mark {
	m := mark{Class: "next", Icon: "clock", Words: v.t("attempt.next"), At: r.Why.Now.SendAt}
	if r.Attempt == 0 {
		m.Words = v.t("attempt.first")
	}
	if r.needsPerson() {
		m.Icon, m.Words, m.At = "hand", v.t("attempt.person"), nil
	}
	if held := r.Why.Now.HeldBy; len(held) > 0 {
		m.Words += ": " + lowerFirst(v.or("gate."+held[0].Gate, held[0].Gate))
	}
	return m
}

// lowerFirst returns a sentence with a small first letter, for the middle of another one.
func lowerFirst(text string) string {
	for i, r := range text {
		if i > 0 {
			return strings.ToLower(text[:i]) + text[i:]
		}
		_ = r
	}
	return text
}

// failureKinds are kinds of failures by parts of their codes; the first that fits counts.
var failureKinds = []struct {
	kind  string
	parts []string
}{
	{"unknown", []string{"unknown_outcome"}},
	{"wait", []string{"429", "too_many", "flood", "rate", "quota"}},
	{"credential", []string{"unauthorized", "token", "invalid_grant", "credential", "401"}},
	{"denied", []string{"forbidden", "denied", "kicked", "rights", "suspended", "403"}},
	{"gone", []string{"not_found", "gone", "chat_invalid", "404", "migrated"}},
	{"long", []string{"too_long"}},
	{"media", []string{"media", "photo", "video", "file"}},
	{"down", []string{"5xx", "500", "502", "503", "504", "unavailable"}},
	{"network", []string{"net_", "timeout", "tls"}},
	{"skipped", []string{"manual_skip"}},
}

// failureWords says what went wrong. The code and the message of the platform are in the details.
func (v *view) failureWords(e *failure) string {
	if e == nil {
		return v.t("failure.failed")
	}
	for _, k := range failureKinds {
		for _, part := range k.parts {
			if strings.Contains(e.Code, part) {
				return v.t("failure." + k.kind)
			}
		}
	}
	if e.Category == "PERMANENT" {
		return v.t("failure.refused")
	}
	return v.t("failure.failed")
}

// span is a length of time in its largest unit.
func (v *view) span(d time.Duration) string {
	switch {
	case d < time.Second:
		return v.t("span.ms")
	case d < 90*time.Second:
		return v.t("span.seconds", int(d.Seconds()+.5))
	case d < 90*time.Minute:
		return v.t("span.minutes", int(d.Minutes()+.5))
	case d < 48*time.Hour:
		return v.t("span.hours", int(d.Hours()+.5))
	}
	return v.n("span.days", int(d.Hours()/24+.5))
}

// clock is the time of a mark: with seconds today, because attempts follow each other closely.
func (v *view) clock(at time.Time) string {
	if sameDay(at.In(v.zone), v.now.In(v.zone)) {
		return at.In(v.zone).Format("15:04:05")
	}
	return v.instant(at)
}

// ended says how a delivery ended without being sent.
func (v *view) ended(r postRow) string {
	if r.LastError == nil {
		return v.t("post.ended")
	}
	return fmt.Sprintf("%s: %s.", v.t("post.ended"), v.failureWords(r.LastError))
}
