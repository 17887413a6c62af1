// Package recurrence expands the rules of posts that repeat into local times, as RFC 5545 says. The database makes
// instants of them.
package recurrence

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/teambition/rrule-go"
)

// LocalLayout is the form of a local start, without seconds and offset.
const LocalLayout = "2006-01-02T15:04"

// horizon bounds the search for a first time: a rule that names 29 February fires every eight years at most.
const horizon = 10

var (
	form = regexp.MustCompile(`^FREQ=(HOURLY|DAILY|WEEKLY|MONTHLY|YEARLY)(;[A-Z]+=[A-Z0-9,+-]+)*$`)
	// until is a local date or a local time. A time in UTC would not be local.
	until = regexp.MustCompile(`;UNTIL=([^;]*)`)
)

// parse returns the parts of a rule. start is local, with the location UTC.
func parse(rule string, start time.Time) (*rrule.ROption, error) {
	if !form.MatchString(rule) {
		return nil, errors.New("must be a rule of RFC 5545 from HOURLY to YEARLY without DTSTART, like FREQ=WEEKLY;BYDAY=MO,FR")
	}
	if given := until.FindStringSubmatch(rule); given != nil && strings.HasSuffix(given[1], "Z") {
		return nil, errors.New("must have a local UNTIL, like UNTIL=20261231T235900, without Z")
	}
	if strings.Contains(rule, "BYSECOND=") {
		return nil, errors.New("must not have BYSECOND: a post repeats once a minute at most")
	}
	option, err := rrule.StrToROptionInLocation(rule, time.UTC)
	if err != nil {
		return nil, fmt.Errorf("must be a rule of RFC 5545: %w", err)
	}
	if option.Count > 0 && !option.Until.IsZero() {
		return nil, errors.New("must not have both COUNT and UNTIL: remove one")
	}
	option.Dtstart = start
	return option, nil
}

// Expansion is the local times of a part of a rule.
type Expansion struct {
	Times []time.Time
	// Through is the end of what Times covers. It is zero if the rule has no later times.
	Through time.Time
}

// Expand returns the times of a rule after a time, exclusive, and until another one, inclusive, at most limit. All
// times are local, with the location UTC.
func Expand(rule string, start, after, until time.Time, limit int) (Expansion, error) {
	option, err := parse(rule, start)
	if err != nil {
		return Expansion{}, err
	}
	// The library would search for a time that never comes until the year 9999.
	ends := !option.Until.IsZero() && !option.Until.After(until)
	if !ends {
		option.Until = until
	}
	parsed, err := rrule.NewRRule(*option)
	if err != nil {
		return Expansion{}, fmt.Errorf("must be a rule of RFC 5545: %w", err)
	}
	found := Expansion{Through: until}
	next := parsed.Iterator()
	for seen := 0; ; seen++ {
		at, more := next()
		if !more {
			if ends || option.Count > 0 && seen == option.Count {
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

// Fault is what is wrong with a rule or its start.
type Fault struct {
	// Field is rule, zone or starts_at.
	Field string
	err   error
}

// Error returns the field and the reason.
func (f *Fault) Error() string { return f.Field + " " + f.err.Error() }

// Reason returns the reason without the field.
func (f *Fault) Reason() string { return f.err.Error() }

// Next returns the first times of a rule after now, at most limit, or a Fault. now is local.
func Next(rule, startsAt string, now time.Time, limit int) ([]time.Time, error) {
	start, err := time.Parse(LocalLayout, startsAt)
	if err != nil {
		return nil, &Fault{"starts_at", fmt.Errorf("must be a local time like 2026-12-01T10:00, got %q", startsAt)}
	}
	after := start.Add(-time.Second)
	if now.After(after) {
		after = now
	}
	found, err := Expand(rule, start, after, after.AddDate(horizon, 0, 0), limit)
	if err != nil {
		return nil, &Fault{"rule", err}
	}
	if len(found.Times) > 0 {
		return found.Times, nil
	}
	reason := errors.New("must fire in the next ten years; correct it, or its start")
	if found.Through.IsZero() {
		reason = errors.New("has ended: it has no time after now; choose a later UNTIL, a larger COUNT or another start")
	}
	return nil, &Fault{"rule", reason}
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
		return nil, &Fault{"zone", fmt.Errorf("must be a time zone like Europe/Moscow, got %q", s.Zone)}
	}
	at := now.In(zone)
	return Next(s.Rule, s.StartsAt, time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), at.Second(), 0, time.UTC), Shown)
}
