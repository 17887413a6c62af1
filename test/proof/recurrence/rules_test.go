package recurrence

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// layout is the form of a local time in RFC 5545.
const layout = "20060102T150405"

// years is the length of the compared time.
const years = 10

// zones have all kinds of changes: one hour, half an hour, a skipped day, changes at midnight and on any weekday.
var zones = []string{
	"UTC", "Europe/Moscow", "Europe/Berlin", "Europe/London", "America/New_York", "America/Los_Angeles", "America/St_Johns", "America/Santiago",
	"America/Havana", "America/Asuncion", "Australia/Lord_Howe", "Australia/Sydney", "Pacific/Auckland", "Pacific/Chatham", "Pacific/Apia", "Africa/Cairo",
	"Africa/Casablanca", "Asia/Beirut", "Asia/Jerusalem", "Asia/Kolkata", "Asia/Kathmandu", "America/Nuuk", "Atlantic/Azores", "Antarctica/Troll",
}

// testCase is a rule with its start.
type testCase struct {
	Zone  string
	Rule  string
	Start time.Time // local; the location is UTC
}

func (c testCase) end() time.Time { return c.Start.AddDate(years, 0, 0) }

func (c testCase) String() string {
	return fmt.Sprintf("%s|%s|%s|%s", c.Zone, c.Rule, c.Start.Format(layout), c.end().Format(layout))
}

// randomCase makes a rule with parts that RFC 5545 allows together. It leaves out what libical 3.0 does not follow: lists
// out of order, days counted from the end in hourly and daily rules, weeks counted from the end, the first week and those
// after 51, BYSETPOS of times of a day or of dates of a week, a day or an hour, and BYHOUR of an hourly rule.
// TestDatesByHand of rfc5545 and TestWeekNumbers have such rules.
func randomCase(r *rand.Rand) testCase {
	start := time.Date(2024+r.IntN(8), time.Month(1+r.IntN(12)), 1+r.IntN(31), r.IntN(24), r.IntN(60), 0, 0, time.UTC)
	if r.IntN(2) == 0 {
		start = start.Truncate(time.Hour).Add(time.Duration(r.IntN(2)) * 30 * time.Minute)
	}
	c := testCase{Zone: zones[r.IntN(len(zones))], Start: start}
	freq := []string{"HOURLY", "DAILY", "WEEKLY", "MONTHLY", "YEARLY"}[r.IntN(5)]
	parts := []string{"FREQ=" + freq}
	add := func(chance int, name string, values func() string) bool {
		if r.IntN(100) >= chance {
			return false
		}
		parts = append(parts, name+"="+values())
		return true
	}
	add(50, "INTERVAL", func() string {
		return strconv.Itoa(1 + r.IntN(map[string]int{"HOURLY": 60, "DAILY": 20, "WEEKLY": 8, "MONTHLY": 14, "YEARLY": 4}[freq]))
	})
	weekNumbers := freq == "YEARLY" && len(parts) == 1 && add(10, "BYWEEKNO", func() string { return someOf(r, 2, 51, 4) })
	yearDays := !weekNumbers && (freq == "YEARLY" || freq == "HOURLY") && add(15, "BYYEARDAY", func() string { return fromEither(r, freq == "YEARLY", 366, 5) })
	by := !weekNumbers && !yearDays && add(25, "BYMONTH", func() string { return someOf(r, 1, 12, 4) })
	monthDays := !weekNumbers && !yearDays && (freq != "YEARLY" || by) && freq != "WEEKLY" && add(30, "BYMONTHDAY", func() string { return fromEither(r, freq == "YEARLY" || freq == "MONTHLY", 31, 4) })
	days := add(map[bool]int{false: 40, true: 100}[weekNumbers], "BYDAY", func() string {
		return weekdays(r, !yearDays && (freq == "MONTHLY" || freq == "YEARLY") && !weekNumbers, freq == "MONTHLY" || strings.Contains(strings.Join(parts, ";"), "BYMONTH="))
	})
	positions := (freq == "YEARLY" || freq == "MONTHLY") && !weekNumbers && (by || yearDays || monthDays || days) &&
		add(15, "BYSETPOS", func() string { return fromEither(r, true, 6, 3) })
	if freq != "HOURLY" && !positions {
		add(25, "BYHOUR", func() string { return someOf(r, 0, 23, 4) })
	}
	if !positions {
		add(20, "BYMINUTE", func() string { return fives(someOf(r, 0, 11, 3)) })
	}
	add(30, "WKST", func() string { return weekdayNames[r.IntN(7)] })
	switch r.IntN(4) {
	case 0:
		parts = append(parts, "COUNT="+strconv.Itoa(1+r.IntN(300)))
	case 1:
		parts = append(parts, "UNTIL="+start.AddDate(0, r.IntN(130), r.IntN(30)).Format(layout))
	}
	c.Rule = strings.Join(parts, ";")
	if weeks := freq == "WEEKLY" && strings.Contains(c.Rule, "INTERVAL"); weeks && (strings.Contains(c.Rule, "SU") || strings.Contains(c.Rule, "WKST")) {
		return randomCase(r) // TestWeeks has them: libical takes other weeks if the week does not begin on Monday, or with a Sunday
	}
	return c
}

var weekdayNames = []string{"MO", "TU", "WE", "TH", "FR", "SA", "SU"}

// someOf returns up to most different numbers in order.
func someOf(r *rand.Rand, least, greatest, most int) string {
	var all []int
	for range 1 + r.IntN(most) {
		all = append(all, least+r.IntN(greatest-least+1))
	}
	return inOrder(all)
}

// fromEither is someOf from 1. If signed, all numbers may count from the end. A list of both kinds is out of order for
// libical, and may name a day twice.
func fromEither(r *rand.Rand, signed bool, greatest, most int) string {
	sign := 1
	if signed && r.IntN(3) == 0 {
		sign = -1
	}
	var all []int
	for range 1 + r.IntN(most) {
		all = append(all, sign*(1+r.IntN(greatest)))
	}
	return inOrder(all)
}

func inOrder(all []int) string {
	slices.Sort(all)
	var texts []string
	for _, n := range slices.Compact(all) {
		texts = append(texts, strconv.Itoa(n))
	}
	return strings.Join(texts, ",")
}

// weekdays returns days of the week, with ordinals of a month or a year if that is allowed.
func weekdays(r *rand.Rand, ordinals, ofMonth bool) string {
	var all []string
	some := r.Perm(7)[:1+r.IntN(3)]
	slices.Sort(some)
	for _, i := range some {
		day := weekdayNames[i]
		if ordinals && r.IntN(2) == 0 {
			most := 53
			if ofMonth {
				most = 5
			}
			day = fromEither(r, true, most, 1) + day
		}
		all = append(all, day)
	}
	return strings.Join(all, ",")
}

// fives multiplies numbers by five: dates of a rule are at least five minutes apart.
func fives(list string) string {
	var all []int
	for text := range strings.SplitSeq(list, ",") {
		n, _ := strconv.Atoi(text) // it was written by inOrder
		all = append(all, 5*n)
	}
	return inOrder(all)
}
