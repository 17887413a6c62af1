// Package rfc5545 checks recurrence rules and expands them into local dates. It refuses rules that implementations of
// RFC 5545 read in different ways, and guards the library: it would search for ever for some rules, and panic for others.
package rfc5545

import (
	"slices"
	"time"

	rrule "github.com/teambition/rrule-go"
)

// Fault is a violation of a rule. It implements error.
type Fault struct {
	// Field is rule, or starts_at if a rule and its start do not fit.
	Field  string
	Reason string
	Remedy string
}

// Error implements error.
func (f *Fault) Error() string { return f.Field + " " + f.Reason + ": " + f.Remedy }

// Iterator returns a function that returns the next date from start to until, both local and inclusive, and false after
// the last one. UNTIL of the rule may end it earlier.
func (r Rule) Iterator(start, until time.Time) (func() (time.Time, bool), error) {
	start, until = local(start), local(until)
	if !r.Until.IsZero() && r.Until.Before(until) {
		until = r.Until
	}
	if r.neverFrom(start) || until.Before(start) {
		return func() (time.Time, bool) { return time.Time{}, false }, nil
	}
	option := r.option
	option.Dtstart, option.Until = start, until
	if len(r.option.Byweekno) > 0 {
		option.Freq, option.Byweekno, option.Count = rrule.DAILY, nil, 0
	}
	dates, err := rrule.NewRRule(option)
	if err != nil {
		return nil, &Fault{"rule", "must be a rule of RFC 5545", "correct it: " + err.Error()}
	}
	if len(r.option.Byweekno) > 0 {
		return r.inWeeks(dates.Iterator()), nil
	}
	return dates.Iterator(), nil
}

// inWeeks passes on the dates in the weeks of BYWEEKNO. The library takes wrong weeks at the ends of some years.
func (r Rule) inWeeks(next func() (time.Time, bool)) func() (time.Time, bool) {
	left := r.Count
	return func() (time.Time, bool) {
		for {
			date, ok := next()
			if !ok || r.Count > 0 && left == 0 {
				return time.Time{}, false
			}
			week, last := r.week(date)
			if slices.Contains(r.option.Byweekno, week) || slices.Contains(r.option.Byweekno, week-last-1) {
				left--
				return date, true
			}
		}
	}
}

// week returns the number of a date's week, and that of the last week of its year. A week begins on WKST and belongs to
// the year of its fourth day.
func (r Rule) week(date time.Time) (number, last int) {
	fourth := func(date time.Time) time.Time {
		return date.AddDate(0, 0, 3-(int(date.Weekday())+6-r.option.Wkst.Day()+7)%7)
	}
	of := func(date time.Time) int { return (fourth(date).YearDay()-1)/7 + 1 }
	return of(date), of(time.Date(fourth(date).Year(), 12, 28, 0, 0, 0, 0, time.UTC))
}

// neverFrom reports whether an hourly rule never meets its hours: the library would search for ever.
func (r Rule) neverFrom(start time.Time) bool {
	if r.option.Freq != rrule.HOURLY || len(r.option.Byhour) == 0 {
		return false
	}
	step := 24
	for n := max(r.option.Interval, 1); n != 0; {
		step, n = n, step%n
	}
	return !slices.ContainsFunc(r.option.Byhour, func(hour int) bool { return (hour-start.Hour())%step == 0 })
}

// local returns the time on the clock as UTC.
func local(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
}
