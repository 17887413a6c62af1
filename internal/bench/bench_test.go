package bench_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/bench"
	"autopost/internal/testing/pgtest"
)

// program returns the daemon that make test has built, or builds it.
func program(t *testing.T) string {
	if folder := os.Getenv("AUTOPOST_TEST_BIN"); folder != "" {
		return filepath.Join(folder, "autopost")
	}
	path := filepath.Join(t.TempDir(), "autopost")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, "autopost/cmd/autopost").CombinedOutput()
	require.NoError(t, err, string(out))
	return path
}

// measure runs goals at the smallest sizes. Goals with a daemon need the program.
func measure(t *testing.T, daemon string, goals ...string) (bench.Report, *pgtest.DB) {
	t.Helper()
	base := pgtest.New(t)
	var progress strings.Builder
	report, err := bench.Run(t.Context(), bench.Options{URL: base.URL(""), Only: goals, Quick: true, Program: daemon, Progress: &progress})
	require.NoError(t, err, progress.String())
	return report, base
}

// The test checks that each goal can be measured, not the figures. The long run
// measures all goals.
func TestGoalsAreMeasured(t *testing.T) {
	t.Parallel()
	goals := []string{"P1", "P10", "ingress", "calendar", "rate"}
	if os.Getenv("AUTOPOST_LONG") != "" {
		goals = slices.DeleteFunc(bench.Goals(), func(goal string) bool { return goal == "P3" }) // tested with and without the peer
	}
	report, base := measure(t, program(t), goals...)
	var measured []string
	for _, result := range report.Results {
		measured = append(measured, result.Goal)
		require.NotEmpty(t, result.Checks, result.Goal)
		for _, check := range result.Checks {
			require.NotEmpty(t, check.Samples, "%s: %s", result.Goal, check.Name)
		}
		for _, figure := range result.Figures {
			require.NotEmpty(t, figure.Samples, "%s: %s", result.Goal, figure.Name)
			if result.Goal != "isolation" { // a call may arrive before the answer of its push
				require.GreaterOrEqual(t, figure.Median, 0.0, "%s: %s", result.Goal, figure.Name)
			}
		}
	}
	require.Equal(t, goals, measured)
	require.Empty(t, pgtest.Column[string](base, `select datname from pg_database where datname like 'autopost_bench%'`), "the benchmark drops its databases")

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
	require.ErrorContains(t, err, `goal must be one of P1, `)
}
