package cli

import (
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/api"
)

func TestTargetTimes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		at       string
		nextFree bool
		move     api.Move
		refusal  string
	}{
		{at: "+2h", move: api.Move{ShiftSeconds: 7200}},
		{at: "-30m", move: api.Move{ShiftSeconds: -1800}},
		{at: "+1d12h", move: api.Move{ShiftSeconds: 129600}},
		{at: "2026-12-01T10:00:00+03:00", move: api.Move{At: "2026-12-01T10:00:00+03:00"}},
		{nextFree: true, move: api.Move{NextFree: true}},
		{refusal: "one of --scheduled-for and --next-free must be set"},
		{at: "+2h", nextFree: true, refusal: "--scheduled-for must not be used with --next-free"},
		{at: "2h", refusal: `a difference with a sign, got "2h"`},
		{at: "2026-12-01 10:00", refusal: `a time with an offset or a difference with a sign, got "2026-12-01 10:00"`},
		{at: "+", refusal: `a time or a difference, got "+"`},
		{at: "+0s", refusal: `a time or a difference, got "+0s"`},
		{at: "--5m", refusal: `a time or a difference, got "--5m"`},
	} {
		target := targetTime{at: c.at, nextFree: c.nextFree}
		move, err := target.move()
		if c.refusal != "" {
			require.ErrorContains(t, err, c.refusal)
			require.ErrorAs(t, err, new(usageError))
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.move, move)
	}
}
