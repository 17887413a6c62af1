package bench

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestChecks(t *testing.T) {
	t.Parallel()
	f := figure("f", "x", 3, 1, 2, 10)
	require.InDelta(t, 2.5, f.Median, 0)
	require.InDelta(t, 1, f.Min, 0)
	require.InDelta(t, 10, f.Max, 0)
	require.Equal(t, []float64{3, 1, 2, 10}, f.Samples, "samples keep the order of the rounds")
	require.True(t, atLeast(2.5, f).Met)
	require.False(t, atLeast(2.6, f).Met)
	require.True(t, atMost(2.5, f).Met)
	require.False(t, atMost(2.4, f).Met)
	require.False(t, atMost(1, figure("no samples", "x")).Met)
	require.False(t, atLeast(0, figure("no samples", "x")).Met)

	require.Equal(t, []float64{0.5, 2}, ratio("r", []float64{1, 4}, []float64{2, 2}).Samples, "one ratio per round")

	met, unmet := Result{Checks: []Check{atMost(9, f)}}, Result{Checks: []Check{atMost(9, f), atMost(1, f)}}
	require.True(t, Report{Results: []Result{met}}.Met())
	require.False(t, Report{Results: []Result{met, unmet}}.Met())
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	for want, v := range map[string]float64{"0": 0, "0.85": 0.85, "2": 2, "12.3": 12.34, "999": 999, "1,000": 1000, "21,400": 21400, "1,234,568": 1234567.8, "-1,500": -1500} {
		require.Equal(t, want, number(v))
	}
}
