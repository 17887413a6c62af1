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

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"autopost/internal/testing/wait"
)

// PgBouncer starts PgBouncer in transaction mode on its own socket, with the given number of server
// connections. It returns its address for the role of the given address.
func PgBouncer(t testing.TB, address string, servers int) string {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil { // Debian's folder is not on the path of every user
		program, err = exec.LookPath("/usr/sbin/pgbouncer")
	}
	require.NoError(t, err, "make setup installs PgBouncer")
	config, err := pgx.ParseConfig(address)
	require.NoError(t, err)
	dir := t.TempDir()
	socket := filepath.Join(dir, "s")
	require.NoError(t, os.Mkdir(socket, 0o777))
	ini := filepath.Join(dir, "pgbouncer.ini")
	require.NoError(t, os.WriteFile(ini, fmt.Appendf(nil, `[databases]
pooled = host=%s port=%d dbname=%s user=%s password=%s
[pgbouncer]
pool_mode = transaction
auth_type = any
listen_port = 6432
unix_socket_dir = %s
default_pool_size = %d
`, config.Host, config.Port, config.Database, config.User, config.Password, socket, servers), 0o644))
	cmd := exec.CommandContext(t.Context(), program, "-q", ini)
	if os.Getuid() == 0 { // PgBouncer refuses to run as root
		account, err := user.Lookup("postgres")
		require.NoError(t, err)
		uid, _ := strconv.ParseUint(account.Uid, 10, 32)
		gid, _ := strconv.ParseUint(account.Gid, 10, 32)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
		for at := dir; at != os.TempDir() && len(at) > 1; at = filepath.Dir(at) {
			require.NoError(t, os.Chmod(at, 0o755))
		}
		require.NoError(t, os.Chown(socket, int(uid), int(gid)))
	}
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	address = "postgres://" + config.User + ":x@/pooled?port=6432&host=" + url.QueryEscape(socket)
	wait.Until(t, "PgBouncer answers", func() bool {
		c, err := pgx.Connect(t.Context(), address)
		if err == nil {
			require.NoError(t, c.Close(t.Context()))
		}
		return err == nil
	})
	return address
}
