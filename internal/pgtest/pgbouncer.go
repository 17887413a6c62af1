package pgtest

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// PgBouncer starts one in transaction mode, over a socket of its own and with so many
// connections to the server, and returns its address for the role of the given one.
func PgBouncer(t testing.TB, address string, servers int) string {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		t.Fatalf("the proofs at full size need PgBouncer (Debian: apt-get install pgbouncer): %v", err)
	}
	config, err := pgx.ParseConfig(address)
	require.NoError(t, err)
	dir := t.TempDir()
	socket := filepath.Join(dir, "s")
	require.NoError(t, os.Mkdir(socket, 0o777))
	ini := filepath.Join(dir, "pgbouncer.ini")
	require.NoError(t, os.WriteFile(ini, fmt.Appendf(nil, `[databases]
door = host=%s port=%d dbname=%s user=%s password=%s
[pgbouncer]
pool_mode = transaction
auth_type = any
listen_port = 6432
unix_socket_dir = %s
default_pool_size = %d
`, config.Host, config.Port, config.Database, config.User, config.Password, socket, servers), 0o644))
	cmd := exec.CommandContext(t.Context(), program, "-q", ini)
	if os.Getuid() == 0 { // it refuses to be root
		nobody, err := user.Lookup("postgres")
		require.NoError(t, err)
		uid, _ := strconv.ParseUint(nobody.Uid, 10, 32)
		gid, _ := strconv.ParseUint(nobody.Gid, 10, 32)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
		for at := dir; at != os.TempDir() && len(at) > 1; at = filepath.Dir(at) {
			require.NoError(t, os.Chmod(at, 0o755))
		}
		require.NoError(t, os.Chown(socket, int(uid), int(gid)))
	}
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	address = "postgres://" + config.User + ":x@/door?port=6432&host=" + url.QueryEscape(socket)
	beat := time.NewTicker(20 * time.Millisecond)
	defer beat.Stop()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); <-beat.C {
		if c, err := pgx.Connect(t.Context(), address); err == nil {
			require.NoError(t, c.Close(t.Context()))
			return address
		}
	}
	t.Fatal("PgBouncer does not answer")
	return ""
}
