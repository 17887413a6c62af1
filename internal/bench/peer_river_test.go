//go:build peers

package bench_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// make test runs this test with the tag peers.
func TestPeerIsCompared(t *testing.T) {
	report, _ := measure(t, "", "P3")
	require.Len(t, report.Results, 1)
	require.Empty(t, report.Results[0].Notes)
	require.Len(t, report.Results[0].Checks, 1)
	require.NotEmpty(t, report.Results[0].Checks[0].Samples)
	require.Greater(t, report.Results[0].Figures[2].Median, 0.0, "River drains")
}
