package youtube

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestUntilQuotaDay(t *testing.T) {
	for now, want := range map[string]time.Duration{
		"2026-11-21T07:59:59Z": time.Second + time.Minute, // 23:59:59 there, in winter
		"2026-11-21T08:00:00Z": 24*time.Hour + time.Minute,
		"2026-07-01T06:30:00Z": 30*time.Minute + time.Minute, // in summer
		"2026-03-08T08:00:00Z": 23*time.Hour + time.Minute,   // the day that loses an hour
		"2026-11-01T07:00:00Z": 25*time.Hour + time.Minute,   // and the one that has it twice
	} {
		at, err := time.Parse(time.RFC3339, now)
		require.NoError(t, err)
		require.Equal(t, want, untilQuotaDay(at), now)
	}
}
