package rfc5545

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	rrule "github.com/teambition/rrule-go"
)

const (
	// layout is the form of a local time in a rule.
	layout = "20060102T150405"
	// maxRule is the largest length of a rule, in bytes.
	maxRule = 1000
	// maxInterval is the largest INTERVAL.
	maxInterval = 999
	// leastGap is the least time between two dates of a rule, in minutes.
	leastGap = 5
)

// Rule is a valid rule.
type Rule struct {
	// Until is local; zero if the rule has none.
	Until time.Time
	// Count is 0 if the rule has none.
	Count  int
	option rrule.ROption
}

var frequencies = map[string]rrule.Frequency{"HOURLY": rrule.HOURLY, "DAILY": rrule.DAILY, "WEEKLY": rrule.WEEKLY, "MONTHLY": rrule.MONTHLY, "YEARLY": rrule.YEARLY}

var weekdays = map[string]rrule.Weekday{"MO": rrule.MO, "TU": rrule.TU, "WE": rrule.WE, "TH": rrule.TH, "FR": rrule.FR, "SA": rrule.SA, "SU": rrule.SU}

// bounds are the greatest values of the lists of numbers, and whether they count from the end, too.
var bounds = map[string]struct {
	least, most int
	signed      bool
}{
	"BYMINUTE": {0, 59, false}, "BYHOUR": {0, 23, false}, "BYMONTH": {1, 12, false}, "BYMONTHDAY": {1, 31, true}, "BYYEARDAY": {1, 366, true},
	"BYWEEKNO": {1, 53, true}, "BYSETPOS": {1, 366, true},
}

func wrong(reason, remedy string) error { return &Fault{"rule", reason, remedy} }

// Parse checks a rule by RFC 5545, section 3.3.10, and by the limits of autopost. The error is a Fault.
func Parse(rule string) (r Rule, err error) {
	parts, err := split(rule)
	if err != nil {
		return r, err
	}
	frequency, known := frequencies[parts["FREQ"]]
	if !known {
		return r, wrong("must have a FREQ of HOURLY, DAILY, WEEKLY, MONTHLY or YEARLY, got "+quoted(parts["FREQ"]), "write FREQ=DAILY, for example")
	}
	r.option.Freq = frequency
	for name, into := range map[string]*[]int{
		"BYMINUTE": &r.option.Byminute, "BYHOUR": &r.option.Byhour, "BYMONTH": &r.option.Bymonth, "BYMONTHDAY": &r.option.Bymonthday,
		"BYYEARDAY": &r.option.Byyearday, "BYWEEKNO": &r.option.Byweekno, "BYSETPOS": &r.option.Bysetpos,
	} {
		if value, given := parts[name]; given {
			if *into, err = numbers(name, value); err != nil {
				return r, err
			}
		}
	}
	if r.option.Interval, err = number(parts, "INTERVAL", maxInterval); err != nil {
		return r, err
	}
	if r.option.Count, err = number(parts, "COUNT", 1_000_000); err != nil {
		return r, err
	}
	r.Count = r.option.Count
	if err := r.days(parts); err != nil {
		return r, err
	}
	if value, given := parts["UNTIL"]; given {
		if r.Until, err = time.Parse(layout, value); err != nil {
			return r, wrong("must have a local UNTIL, got "+quoted(value), "write UNTIL=20261231T235959, in the zone of the recurrence")
		}
	}
	if err := r.combination(parts); err != nil {
		return r, err
	}
	r.joinDays()
	return r, nil
}

// split returns the values of the parts by their names.
func split(rule string) (map[string]string, error) {
	if len(rule) > maxRule {
		return nil, wrong(fmt.Sprintf("must have at most %d characters, got %d", maxRule, len(rule)), "shorten it")
	}
	known := []string{"FREQ", "INTERVAL", "COUNT", "UNTIL", "BYMINUTE", "BYHOUR", "BYDAY", "BYMONTHDAY", "BYYEARDAY", "BYWEEKNO", "BYMONTH", "BYSETPOS", "WKST"}
	parts := map[string]string{}
	for part := range strings.SplitSeq(strings.ToUpper(strings.TrimSpace(rule)), ";") {
		name, value, _ := strings.Cut(part, "=")
		switch {
		case strings.Contains(name, "DTSTART"):
			return nil, wrong("must not have DTSTART", "give the start in starts_at")
		case name == "BYSECOND":
			return nil, wrong("must not have BYSECOND", "leave it out: the second is that of starts_at")
		case !slices.Contains(known, name):
			return nil, wrong("must have only known parts, got "+quoted(name), "use "+strings.Join(known, ", "))
		case value == "":
			return nil, wrong("must have a value for "+name, "write "+name+"=…, or leave it out")
		}
		if _, twice := parts[name]; twice {
			return nil, wrong("must have "+name+" once", "join its values with commas")
		}
		parts[name] = value
	}
	return parts, nil
}

func quoted(value string) string {
	if len(value) > 40 {
		value = value[:40]
	}
	return strconv.Quote(value)
}

// number returns a positive number; 0 if the rule does not have it.
func number(parts map[string]string, name string, most int) (int, error) {
	value, given := parts[name]
	if !given {
		return 0, nil
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > most {
		return 0, wrong(fmt.Sprintf("must have %s from 1 to %d, got %s", name, most, quoted(value)), "correct it")
	}
	return n, nil
}

// numbers returns a list of numbers, sorted and without repeats.
func numbers(name, value string) ([]int, error) {
	b := bounds[name]
	var all []int
	for text := range strings.SplitSeq(value, ",") {
		n, err := strconv.Atoi(text)
		size := n
		if b.signed {
			size = max(n, -n)
		}
		if err != nil || size < b.least || size > b.most {
			allowed := fmt.Sprintf("%d to %d", b.least, b.most)
			if b.signed {
				allowed += fmt.Sprintf(" or -%d to -%d", b.most, b.least)
			}
			return nil, wrong(fmt.Sprintf("must have numbers of %s in %s, got %s", allowed, name, quoted(text)), "correct it")
		}
		all = append(all, n)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// days reads BYDAY and WKST.
func (r *Rule) days(parts map[string]string) error {
	if value, given := parts["WKST"]; given {
		day, known := weekdays[value]
		if !known {
			return wrong("must have a WKST of MO, TU, WE, TH, FR, SA or SU, got "+quoted(value), "correct it")
		}
		r.option.Wkst = day
	}
	value, given := parts["BYDAY"]
	if !given {
		return nil
	}
	for text := range strings.SplitSeq(value, ",") {
		at := max(len(text)-2, 0)
		day, known := weekdays[text[at:]]
		n := 0
		if known && at > 0 {
			var err error
			if n, err = strconv.Atoi(text[:at]); err != nil || n == 0 || n < -53 || n > 53 {
				known = false
			}
		}
		if !known {
			return wrong("must have days such as MO, 1MO or -1FR in BYDAY, got "+quoted(text), "correct it")
		}
		if n != 0 {
			if (r.option.Freq == rrule.MONTHLY || parts["BYMONTH"] != "") && (n < -5 || n > 5) {
				return wrong("must have numbers of -5 to 5 for the days of a month, got "+quoted(text), "correct it")
			}
			if r.option.Freq != rrule.MONTHLY && r.option.Freq != rrule.YEARLY || parts["BYWEEKNO"] != "" {
				return wrong("must have numbers in BYDAY only with FREQ=MONTHLY, or FREQ=YEARLY without BYWEEKNO, got "+quoted(text), "leave the number out")
			}
			day = day.Nth(n)
		}
		if !slices.Contains(r.option.Byweekday, day) {
			r.option.Byweekday = append(r.option.Byweekday, day)
		}
	}
	return nil
}

// joinDays writes days without a number as all their numbers if others have one: rrule takes the days that are in both.
func (r *Rule) joinDays() {
	numbered := func(day rrule.Weekday) bool { return day.N() != 0 }
	if !slices.ContainsFunc(r.option.Byweekday, numbered) {
		return
	}
	most := 53
	if r.option.Freq == rrule.MONTHLY || len(r.option.Bymonth) > 0 {
		most = 5
	}
	var all []rrule.Weekday
	for _, day := range r.option.Byweekday {
		if numbered(day) {
			all = append(all, day)
			continue
		}
		for n := 1; n <= most; n++ {
			all = append(all, day.Nth(n))
		}
	}
	r.option.Byweekday = all
}

// combination checks the parts together.
func (r *Rule) combination(parts map[string]string) error {
	freq, has := parts["FREQ"], func(name string) bool { return parts[name] != "" }
	switch {
	case has("COUNT") && has("UNTIL"):
		return wrong("must have COUNT or UNTIL, not both", "leave one out")
	case has("BYWEEKNO") && freq != "YEARLY":
		return wrong("must have BYWEEKNO only with FREQ=YEARLY", "leave it out")
	case has("BYWEEKNO") && (!has("BYDAY") || has("BYMONTH") || has("BYMONTHDAY") || has("BYYEARDAY")):
		// Implementations differ: all days of the week, or that of the start; the weeks of the months, or none.
		return wrong("must have BYWEEKNO with BYDAY, and without BYMONTH, BYMONTHDAY and BYYEARDAY", "add BYDAY, and leave the others out")
	case has("BYWEEKNO") && (r.option.Interval > 1 || has("BYSETPOS")):
		// A week may belong to the year before or after its days.
		return wrong("must have BYWEEKNO without INTERVAL and BYSETPOS", "leave them out")
	case has("BYYEARDAY") && (has("BYMONTH") || has("BYMONTHDAY")) && freq == "YEARLY":
		return wrong("must not have BYYEARDAY with BYMONTH or BYMONTHDAY", "leave one out")
	case has("BYMONTHDAY") && !has("BYMONTH") && freq == "YEARLY":
		// Implementations differ: the days of all months, or of that of the start.
		return wrong("must have BYMONTH with BYMONTHDAY if FREQ=YEARLY", "add BYMONTH, or write FREQ=MONTHLY for every month")
	case has("BYYEARDAY") && freq != "YEARLY" && freq != "HOURLY":
		return wrong("must have BYYEARDAY only with FREQ=YEARLY or HOURLY", "leave it out")
	case has("BYMONTHDAY") && freq == "WEEKLY":
		return wrong("must not have BYMONTHDAY with FREQ=WEEKLY", "use FREQ=MONTHLY")
	case has("BYSETPOS") && !slices.ContainsFunc([]string{"BYMINUTE", "BYHOUR", "BYDAY", "BYMONTHDAY", "BYYEARDAY", "BYWEEKNO", "BYMONTH"}, has):
		return wrong("must have BYSETPOS only with another BY part", "leave it out")
	}
	minutes := r.option.Byminute
	for i, minute := range minutes {
		before := minutes[(i+len(minutes)-1)%len(minutes)]
		if gap := (minute - before + 60) % 60; gap != 0 && gap < leastGap {
			return wrong(fmt.Sprintf("must not have dates within %d minutes, got %d minutes in BYMINUTE", leastGap, gap), "leave some minutes out")
		}
	}
	return nil
}
