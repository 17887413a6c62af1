package recurrence

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func local(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(LocalLayout, text)
	require.NoError(t, err)
	return at
}

func texts(times []time.Time) (all []string) {
	for _, at := range times {
		all = append(all, at.Format(LocalLayout))
	}
	return all
}

func TestNextTimes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule, start, now string
		want             []string
	}{
		{"FREQ=WEEKLY;BYDAY=MO,FR", "2026-12-01T10:00", "2026-11-24T09:00", []string{"2026-12-04T10:00", "2026-12-07T10:00", "2026-12-11T10:00"}},
		{"FREQ=MONTHLY;BYDAY=-1FR", "2026-12-01T10:00", "2027-01-01T00:00", []string{"2027-01-29T10:00", "2027-02-26T10:00", "2027-03-26T10:00"}},
		{"FREQ=DAILY;COUNT=5", "2026-12-01T10:00", "2026-12-04T10:00", []string{"2026-12-05T10:00"}},
		{"FREQ=YEARLY", "2024-02-29T10:00", "2026-12-01T00:00", []string{"2028-02-29T10:00", "2032-02-29T10:00", "2036-02-29T10:00"}},
		{"FREQ=DAILY", "2026-12-01T10:00", "2026-11-01T00:00", []string{"2026-12-01T10:00", "2026-12-02T10:00", "2026-12-03T10:00"}},
	} {
		got, err := Next(c.rule, c.start, local(t, c.now), 3)
		require.NoError(t, err, c.rule)
		require.Equal(t, c.want, texts(got), c.rule)
	}
}

func TestWrongRulesNameTheField(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ rule, start, field, reason string }{
		{"FREQ=MINUTELY", "2026-12-01T10:00", "rule", "must have a FREQ of HOURLY"},
		{"DTSTART=20261201T100000;FREQ=DAILY", "2026-12-01T10:00", "rule", "must not have DTSTART"},
		{"FREQ=DAILY;BYSECOND=10", "2026-12-01T10:00", "rule", "BYSECOND"},
		{"FREQ=DAILY;UNTIL=20261231T235900Z", "2026-12-01T10:00", "rule", "must have a local UNTIL"},
		{"FREQ=DAILY;UNTIL=20251231T235900", "2026-12-01T10:00", "rule", "UNTIL before starts_at"},
		{"FREQ=DAILY;UNTIL=20251231T235900", "2020-12-01T10:00", "rule", "has ended"},
		{"FREQ=HOURLY;INTERVAL=2;BYHOUR=8", "2026-12-01T09:00", "rule", "must fire in the next ten years"},
		{"FREQ=DAILY;COUNT=3;UNTIL=20271231T235900", "2026-12-01T10:00", "rule", "COUNT"},
		{"FREQ=DAILY;COUNT=3", "2020-12-01T10:00", "rule", "has ended"},
		{"FREQ=HOURLY;BYMONTH=2;BYMONTHDAY=30", "2026-12-01T10:00", "rule", "must fire in the next ten years"},
		{"FREQ=DAILY;BYHOUR=77", "2026-12-01T10:00", "rule", "BYHOUR"},
		{"FREQ=DAILY", "2026-12-01", "starts_at", "must be a local time"},
	} {
		_, err := Next(c.rule, c.start, local(t, "2026-11-24T00:00"), 10)
		var fault *Fault
		require.ErrorAs(t, err, &fault, c.rule)
		require.Equal(t, c.field, fault.Field)
		require.Contains(t, fault.Error(), c.reason)
	}
}

// An expansion in parts gives each time once and says where the rule ends.
func TestPartsMeet(t *testing.T) {
	t.Parallel()
	start := local(t, "2026-01-01T00:30")
	whole, err := Expand("FREQ=HOURLY;COUNT=1000", start, start.Add(-time.Second), start.AddDate(1, 0, 0), 10000)
	require.NoError(t, err)
	require.Len(t, whole.Times, 1000)
	require.Zero(t, whole.Through)
	var all []time.Time
	for after, parts := start.Add(-time.Second), 0; ; parts++ {
		part, err := Expand("FREQ=HOURLY;COUNT=1000", start, after, start.AddDate(1, 0, 0), 300)
		require.NoError(t, err)
		all = append(all, part.Times...)
		if part.Through.IsZero() {
			require.Equal(t, 3, parts)
			break
		}
		after = part.Through
	}
	require.Equal(t, whole.Times, all)
}

// A rule with UNTIL includes it, and an expansion includes its end.
func TestEndsAreIncluded(t *testing.T) {
	t.Parallel()
	start := local(t, "2026-01-01T09:00")
	found, err := Expand("FREQ=DAILY;UNTIL=20260103T090000", start, start.Add(-time.Second), start.AddDate(1, 0, 0), 100)
	require.NoError(t, err)
	require.Len(t, found.Times, 3)
	found, err = Expand("FREQ=DAILY", start, start.Add(-time.Second), start.AddDate(0, 0, 1), 100)
	require.NoError(t, err)
	require.Len(t, found.Times, 2)
}
