package recurrence

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
)

// Every n-th week has its days: those whose week, counted from the week of the start, is divisible by n. A week begins
// on WKST.
func TestWeeks(t *testing.T) {
	t.Parallel()
	count := 300
	if pgtest.Long() {
		count = 20_000
	}
	random := rand.New(rand.NewPCG(5545, 2))
	for range count {
		start := time.Date(2024+random.IntN(8), time.Month(1+random.IntN(12)), 1+random.IntN(31), random.IntN(24), random.IntN(60), 0, 0, time.UTC)
		interval, first := 1+random.IntN(8), random.IntN(7)
		days := random.Perm(7)[:1+random.IntN(4)]
		c := testCase{Zone: "UTC", Start: start, Rule: fmt.Sprintf("FREQ=WEEKLY;INTERVAL=%d;BYDAY=%s;WKST=%s", interval, names(days), weekdayNames[first])}
		week := start.AddDate(0, 0, -((weekday(start) - first + 7) % 7))
		var want []string
		for at, n := week, 0; !at.After(c.end()); at, n = at.AddDate(0, 0, 1), n+1 {
			if n/7%interval == 0 && slices.Contains(days, weekday(at)) && !at.Before(start) {
				want = append(want, at.Format(layout))
			}
		}
		require.Equal(t, want, locals(t, c), c.String())
	}
}

// A numbered week is that of ISO 8601, and may have days of the year before and after. -1 is the last week of a year.
func TestWeekNumbers(t *testing.T) {
	t.Parallel()
	count := 300
	if pgtest.Long() {
		count = 20_000
	}
	random := rand.New(rand.NewPCG(5545, 3))
	for range count {
		start := time.Date(2024+random.IntN(8), time.Month(1+random.IntN(12)), 1+random.IntN(31), random.IntN(24), 0, 0, 0, time.UTC)
		days, text := random.Perm(7)[:1+random.IntN(4)], ""
		var numbers []int
		for range 1 + random.IntN(4) {
			n := 1 + random.IntN(53)
			if random.IntN(4) == 0 {
				n = 48 + random.IntN(6)
			}
			if random.IntN(3) == 0 {
				n = -n
			}
			numbers = append(numbers, n)
			text += fmt.Sprintf(",%d", n)
		}
		c := testCase{Zone: "UTC", Start: start, Rule: fmt.Sprintf("FREQ=YEARLY;BYWEEKNO=%s;BYDAY=%s", text[1:], names(days))}
		var want []string
		for at := start; !at.After(c.end()); at = at.AddDate(0, 0, 1) {
			year, week := at.ISOWeek()
			_, last := time.Date(year, 12, 28, 0, 0, 0, 0, time.UTC).ISOWeek()
			if (slices.Contains(numbers, week) || slices.Contains(numbers, week-last-1)) && slices.Contains(days, weekday(at)) {
				want = append(want, at.Format(layout))
			}
		}
		require.Equal(t, want, locals(t, c), c.String())
	}
}

// weekday is 0 for Monday.
func weekday(at time.Time) int { return (int(at.Weekday()) + 6) % 7 }

func names(days []int) string {
	text := ""
	for _, day := range days {
		text += "," + weekdayNames[day]
	}
	return text[1:]
}
