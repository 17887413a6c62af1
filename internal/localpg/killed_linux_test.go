package localpg_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/localpg"
	"autopost/internal/testing/wait"
)

const starterDir = "LOCALPG_TEST_STARTER_DIR"

// TestMain also runs the child process that TestKilledStarter kills.
func TestMain(m *testing.M) {
	if dir := os.Getenv(starterDir); dir != "" {
		instance, err := localpg.Start(context.Background(), localpg.Options{Dir: dir, Volatile: true})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("ready", instance.URL())
		select {}
	}
	os.Exit(m.Run())
}

// After SIGKILL of the starter, the server shuts down cleanly and the next start finds all committed
// data.
func TestKilledStarter(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	starter := exec.Command(os.Args[0])
	starter.Env = append(os.Environ(), starterDir+"="+dir)
	out, err := starter.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, starter.Start())
	t.Cleanup(func() { _ = starter.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	dsn, ok := strings.CutPrefix(strings.TrimSpace(line), "ready ")
	require.True(t, ok, line)

	attached := start(t, localpg.Options{Dir: dir})
	require.True(t, attached.Attached(), "a running server of another process is used")
	query(t, dsn, "create table kept as select 'all' as word")
	require.NoError(t, starter.Process.Kill())
	_ = starter.Wait()

	pidFile := filepath.Join(dir, "data", "postmaster.pid")
	require.Eventually(t, func() bool { _, err := os.Stat(pidFile); return os.IsNotExist(err) },
		wait.Bound, 20*time.Millisecond, "the server ends with its starter")
	log, err := os.ReadFile(filepath.Join(dir, "postgres.log"))
	require.NoError(t, err)
	require.Contains(t, string(log), "database system is shut down")

	again := start(t, localpg.Options{Dir: dir})
	require.False(t, again.Attached())
	require.Equal(t, "all", query(t, again.URL(), "select word from kept"))
}
