package bench_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/bench"
	"autopost/internal/pgtest"
)

// program builds the daemon.
func program(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "autopost")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, "autopost/cmd/autopost").CombinedOutput()
	require.NoError(t, err, string(out))
	return path
}

// At the smallest sizes: a goal can be measured, whatever the figures are. The long
// run takes all of them.
func TestGoalsAreMeasured(t *testing.T) {
	t.Parallel()
	goals := []string{"P1", "P3", "P4", "P10", "isolation", "ingress", "rate"}
	if os.Getenv("AUTOPOST_LONG") != "" {
		goals = bench.Goals()
	}
	base := pgtest.New(t)
	var progress strings.Builder
	report, err := bench.Run(t.Context(), bench.Options{URL: base.URL(""), Only: goals, Quick: true, Program: program(t), Progress: &progress})
	require.NoError(t, err, progress.String())

	var measured []string
	for _, result := range report.Results {
		measured = append(measured, result.Goal)
		require.NotEmpty(t, result.Checks, result.Goal)
		for _, check := range result.Checks {
			require.NotEmpty(t, check.Samples, "%s: %s", result.Goal, check.Name)
		}
		for _, figure := range result.Figures {
			require.NotEmpty(t, figure.Samples, "%s: %s", result.Goal, figure.Name)
			if result.Goal != "isolation" { // a call may be faster than the answer to its push
				require.GreaterOrEqual(t, figure.Median, 0.0, "%s: %s", result.Goal, figure.Name)
			}
		}
	}
	require.Equal(t, goals, measured)
	require.Empty(t, pgtest.Column[string](base, `select datname from pg_database where datname like 'autopost_bench%'`), "nothing is left on a server that was given")

	var again bench.Report
	var out bytes.Buffer
	require.NoError(t, report.JSON(&out))
	require.NoError(t, json.Unmarshal(out.Bytes(), &again))
	require.Equal(t, report, again)
	out.Reset()
	report.Table(&out)
	for _, name := range goals {
		require.Contains(t, out.String(), name)
	}
}

func TestUnknownGoal(t *testing.T) {
	t.Parallel()
	_, err := bench.Run(t.Context(), bench.Options{Only: []string{"P12"}})
	require.ErrorContains(t, err, `no goal is called "P12": there are P1, `)
}
