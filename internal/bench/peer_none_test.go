//go:build !peers

package bench_test

import (
	"bytes"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBuildWithoutPeerSaysSo(t *testing.T) { // not parallel: TestGoalsAreMeasured counts databases
	report, _ := measure(t, "", "P3")
	require.Len(t, report.Results, 1)
	require.Empty(t, report.Results[0].Checks)
	require.Equal(t, []string{"River: built without the peer: run make bench"}, report.Results[0].Notes)
	var table bytes.Buffer
	report.Table(&table)
	require.Contains(t, table.String(), "built without the peer: run make bench")
}

func TestProgramDoesNotLinkThePeer(t *testing.T) {
	t.Parallel()
	linked, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "autopost/cmd/autopost").CombinedOutput()
	require.NoError(t, err, string(linked))
	require.NotContains(t, string(linked), "riverqueue")
}
