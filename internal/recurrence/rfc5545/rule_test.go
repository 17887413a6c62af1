package rfc5545

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// byHand are rules that libical 3.0 does not follow; test/proof/recurrence compares all others. The dates follow from
// RFC 5545, section 3.3.10.
var byHand = []struct{ rule, start, want string }{
	{"FREQ=DAILY;BYHOUR=12,23,20;COUNT=4", "20250125T040000", "20250125T120000 20250125T200000 20250125T230000 20250126T120000"},
	{"FREQ=HOURLY;BYMONTHDAY=-3;BYHOUR=10;COUNT=3", "20310921T043000", "20310928T103000 20311029T103000 20311128T103000"},
	{"FREQ=DAILY;INTERVAL=2;BYMONTHDAY=-1;COUNT=2", "20260101T090000", "20260131T090000 20260228T090000"},
	{"FREQ=HOURLY;INTERVAL=3;BYHOUR=2,3,6;COUNT=3", "20260101T000000", "20260101T030000 20260101T060000 20260102T030000"},
	{"FREQ=WEEKLY;BYDAY=MO,TU,WE;BYSETPOS=-1;COUNT=2", "20260101T090000", "20260107T090000 20260114T090000"},
	{"FREQ=WEEKLY;BYDAY=MO,TU;BYSETPOS=4", "20260101T090000", ""},
	{"FREQ=MONTHLY;BYMONTHDAY=1;BYHOUR=9,18;BYSETPOS=2;COUNT=2", "20260115T120000", "20260201T180000 20260301T180000"},
	{"FREQ=WEEKLY;INTERVAL=7;BYDAY=SU;COUNT=2", "20240529T234700", "20240602T234700 20240721T234700"},
	{"FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=MO", "19970805T090000", "19970805T090000 19970810T090000 19970819T090000 19970824T090000"},
	{"FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=SU", "19970805T090000", "19970805T090000 19970817T090000 19970819T090000 19970831T090000"},
	{"FREQ=YEARLY;BYWEEKNO=-1;BYDAY=MO;COUNT=2", "20260101T090000", "20261228T090000 20271227T090000"},
	{"FREQ=HOURLY;INTERVAL=24;BYDAY=TU;BYHOUR=15", "20270710T173000", ""},
	{"freq=daily;count=1", "20260101T090000", "20260101T090000"},
	// A day that two numbers name counts once.
	{"FREQ=MONTHLY;BYMONTHDAY=-8,24,27;BYSETPOS=-1;COUNT=3", "20240801T000600", "20240827T000600 20240927T000600 20241027T000600"},
}

func TestDatesByHand(t *testing.T) {
	t.Parallel()
	for _, c := range byHand {
		start, err := time.Parse(layout, c.start)
		require.NoError(t, err)
		rule, err := Parse(c.rule)
		require.NoError(t, err, c.rule)
		next, err := rule.Iterator(start, start.AddDate(10, 0, 0))
		require.NoError(t, err, c.rule)
		var got []string
		for date, ok := next(); ok; date, ok = next() {
			got = append(got, date.Format(layout))
		}
		require.Equal(t, c.want, strings.Join(got, " "), c.rule)
	}
}

func TestWrongRulesAreRefused(t *testing.T) {
	t.Parallel()
	for rule, reason := range map[string]string{
		"":                                   "known parts",
		"INTERVAL=2":                         "must have a FREQ",
		"FREQ=SECONDLY":                      `got "SECONDLY"`,
		"FREQ=MINUTELY":                      "HOURLY, DAILY",
		"FREQ=DAILY;COLOUR=RED":              `got "COLOUR"`,
		"FREQ=DAILY;FREQ=DAILY":              "once",
		"FREQ=DAILY;COUNT":                   "a value for COUNT",
		"DTSTART=20260101T090000;FREQ=DAILY": "must not have DTSTART",
		"RRULE:FREQ=DAILY":                   "known parts",
		"FREQ=DAILY;BYSECOND=0":              "must not have BYSECOND",
		"FREQ=DAILY;INTERVAL=0":              "INTERVAL from 1",
		"FREQ=DAILY;COUNT=-1":                "COUNT from 1",
		"FREQ=DAILY;COUNT=1;UNTIL=20270101T000000":   "COUNT or UNTIL",
		"FREQ=DAILY;UNTIL=20270101T000000Z":          "a local UNTIL",
		"FREQ=DAILY;UNTIL=20270101":                  "a local UNTIL",
		"FREQ=DAILY;BYHOUR=24":                       "0 to 23 in BYHOUR",
		"FREQ=DAILY;BYMINUTE=1,4":                    "within 5 minutes, got 3",
		"FREQ=HOURLY;BYMINUTE=0,58":                  "within 5 minutes, got 2",
		"FREQ=MONTHLY;BYMONTHDAY=0":                  "1 to 31 or -31 to -1 in BYMONTHDAY",
		"FREQ=WEEKLY;BYMONTHDAY=1":                   "FREQ=WEEKLY",
		"FREQ=DAILY;BYDAY=1MO":                       "numbers in BYDAY only",
		"FREQ=MONTHLY;BYDAY=6MO":                     "-5 to 5",
		"FREQ=YEARLY;BYDAY=54MO":                     "days such as",
		"FREQ=WEEKLY;BYDAY=XX":                       "days such as",
		"FREQ=WEEKLY;BYDAY=M":                        "days such as",
		"FREQ=WEEKLY;WKST=1MO":                       "WKST",
		"FREQ=DAILY;BYSETPOS=1":                      "another BY part",
		"FREQ=DAILY;BYWEEKNO=1":                      "only with FREQ=YEARLY",
		"FREQ=YEARLY;BYWEEKNO=1":                     "BYWEEKNO with BYDAY",
		"FREQ=YEARLY;INTERVAL=2;BYWEEKNO=1;BYDAY=MO": "without INTERVAL and BYSETPOS",
		"FREQ=YEARLY;BYMONTHDAY=1":                   "BYMONTH with BYMONTHDAY",
		"FREQ=YEARLY;BYYEARDAY=1;BYMONTH=1":          "BYYEARDAY with BYMONTH",
		"FREQ=MONTHLY;BYYEARDAY=1":                   "BYYEARDAY only",
		"FREQ=DAILY;" + strings.Repeat("X", 1000):    "at most 1000",
	} {
		_, err := Parse(rule)
		var fault *Fault
		require.ErrorAs(t, err, &fault, rule)
		require.Equal(t, "rule", fault.Field)
		require.Contains(t, fault.Reason, reason, rule)
		require.NotEmpty(t, fault.Remedy)
	}
}
