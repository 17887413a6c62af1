//go:build citus

package citus

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
)

// TestDemoCriteria runs the demo on the cluster, with the daemon at the coordinator.
func TestDemoCriteria(t *testing.T) {
	program := filepath.Join(os.Getenv("AUTOPOST_TEST_BIN"), "autopost")
	cmd := exec.CommandContext(t.Context(), program, "demo", "--once", "--database", "--listen", "127.0.0.1:0")
	cmd.Env = []string{"DATABASE_URL=" + pgtest.New(t).URL(""), "PATH=" + os.Getenv("PATH"), "TMPDIR=" + t.TempDir()}
	printed, err := cmd.CombinedOutput()
	t.Log(string(printed))
	require.NoError(t, err)
	for _, criterion := range []string{"Config-driven channel", "429 with retry_after", "Per-channel dedup", "Bad channel", "Invariants of the database"} {
		require.True(t, strings.Contains(string(printed), criterion), criterion)
	}
}
