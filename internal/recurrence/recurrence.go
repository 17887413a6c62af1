// Package recurrence expands the rules of posts that repeat into local times, as RFC 5545 says. The database makes
// instants of them.
package recurrence

import (
	"fmt"
	"time"

	"autopost/internal/recurrence/rfc5545"
)

// LocalLayout is the form of a local start, without seconds and offset.
const LocalLayout = "2006-01-02T15:04"

// horizon bounds the search for a first time, in years: a rule that names 29 February fires every eight years at most.
const horizon = 10

// Fault is what is wrong with a rule, its zone or its start. Field is rule, zone or starts_at.
type Fault = rfc5545.Fault

// Expansion is the local times of a part of a rule.
type Expansion struct {
	Times []time.Time
	// Through is the end of what Times covers. It is zero if the rule has no later times.
	Through time.Time
}

// Expand returns the times of a rule after a time, exclusive, and until another one, inclusive, at most limit. All
// times are local, with the location UTC. The error is a Fault.
func Expand(rule string, start, after, until time.Time, limit int) (Expansion, error) {
	parsed, err := rfc5545.Parse(rule)
	if err != nil {
		return Expansion{}, err
	}
	if !parsed.Until.IsZero() && parsed.Until.Before(start) {
		return Expansion{}, &Fault{Field: "rule", Reason: "must not have an UNTIL before starts_at, got " + parsed.Until.Format(LocalLayout), Remedy: "choose a later UNTIL"}
	}
	next, err := parsed.Iterator(start, until)
	if err != nil {
		return Expansion{}, err
	}
	found := Expansion{Through: until}
	for seen := 0; ; seen++ {
		at, more := next()
		if !more {
			if !parsed.Until.IsZero() && !parsed.Until.After(until) || parsed.Count > 0 && seen == parsed.Count {
				found.Through = time.Time{}
			}
			return found, nil
		}
		if !at.After(after) {
			continue
		}
		found.Times = append(found.Times, at)
		if len(found.Times) == limit {
			found.Through = at
			return found, nil
		}
	}
}

// Next returns the first times of a rule after now, at most limit, or a Fault. now is local.
func Next(rule, startsAt string, now time.Time, limit int) ([]time.Time, error) {
	start, err := time.Parse(LocalLayout, startsAt)
	if err != nil {
		return nil, &Fault{Field: "starts_at", Reason: fmt.Sprintf("must be a local time, got %q", startsAt), Remedy: "write 2026-12-01T10:00"}
	}
	after := start.Add(-time.Second)
	if now.After(after) {
		after = now
	}
	found, err := Expand(rule, start, after, after.AddDate(horizon, 0, 0), limit)
	if err != nil || len(found.Times) > 0 {
		return found.Times, err
	}
	if found.Through.IsZero() {
		return nil, &Fault{Field: "rule", Reason: "has ended: it has no time after now", Remedy: "choose a later UNTIL, a larger COUNT or another start"}
	}
	return nil, &Fault{Field: "rule", Reason: "must fire in the next ten years", Remedy: "correct it, or its start"}
}

// Schedule is what decides when a post repeats.
type Schedule struct {
	Rule string `json:"rule"`
	// Zone is an IANA name.
	Zone string `json:"zone"`
	// StartsAt is local.
	StartsAt string `json:"starts_at"`
}

// Shown is how many of the next instants people see.
const Shown = 10

// Upcoming returns the next local times, at most Shown, or a Fault.
func (s Schedule) Upcoming(now time.Time) ([]time.Time, error) {
	zone, err := time.LoadLocation(s.Zone)
	if err != nil {
		return nil, &Fault{Field: "zone", Reason: fmt.Sprintf("must be a time zone, got %q", s.Zone), Remedy: "write a name like Europe/Moscow"}
	}
	at := now.In(zone)
	return Next(s.Rule, s.StartsAt, time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), at.Second(), 0, time.UTC), Shown)
}
