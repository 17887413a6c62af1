package localpg_test

import (
	"context"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"autopost/internal/localpg"
)

// openDir returns a temporary directory that the server's user may enter if the test runs as root.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "localpg")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o755))
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

func start(t *testing.T, o localpg.Options) *localpg.Instance {
	t.Helper()
	o.Volatile = true
	instance, err := localpg.Start(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, instance.Stop(context.Background())) })
	return instance
}

func query(t *testing.T, dsn, sql string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(t.Context())) }()
	var answer string
	rows, err := conn.Query(t.Context(), sql, pgx.QueryExecModeSimpleProtocol)
	require.NoError(t, err)
	for rows.Next() {
		require.NoError(t, rows.Scan(&answer))
	}
	require.NoError(t, rows.Err())
	return answer
}

func TestRestartKeepsData(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(openDir(t), "not", "yet", "made")
	first := start(t, localpg.Options{Dir: dir})
	require.False(t, first.Attached())
	query(t, first.URL(), "create table kept as select 'привет' as word")
	require.NoError(t, first.Stop(t.Context()))
	require.NoError(t, first.Stop(t.Context()), "a second stop is harmless")
	<-first.Done()

	second := start(t, localpg.Options{Dir: dir})
	require.Equal(t, "ПРИВЕТ", query(t, second.URL(), "select upper(word) from kept"))
	require.Equal(t, first.URL(), second.URL(), "the password and the socket outlive a restart")
}

func TestServerSettings(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	instance := start(t, localpg.Options{Dir: dir, MaxConnections: 17})
	for setting, want := range map[string]string{
		"max_connections": "17", "listen_addresses": "", "data_checksums": "on", "server_encoding": "UTF8",
		"TimeZone": "UTC", "fsync": "off", "password_encryption": "scram-sha-256",
	} {
		require.Equal(t, want, query(t, instance.URL(), "select current_setting('"+setting+"')"), setting)
	}
	require.Equal(t, "autopost autopost", query(t, instance.URL(), "select current_user || ' ' || current_database()"))
	info, err := os.Stat(filepath.Join(dir, "password"))
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())

	wrong, err := url.Parse(instance.URL())
	require.NoError(t, err)
	wrong.User = url.UserPassword("autopost", "guess")
	_, err = pgx.Connect(t.Context(), wrong.String())
	require.ErrorContains(t, err, "password authentication failed")
}

func TestDurableByDefault(t *testing.T) {
	t.Parallel()
	instance, err := localpg.Start(t.Context(), localpg.Options{Dir: openDir(t)})
	require.NoError(t, err)
	defer func() { require.NoError(t, instance.Stop(context.Background())) }()
	for _, setting := range []string{"fsync", "full_page_writes", "synchronous_commit"} {
		require.Equal(t, "on", query(t, instance.URL(), "select current_setting('"+setting+"')"), setting)
	}
}

func TestSecondStartAttaches(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	first := start(t, localpg.Options{Dir: dir})
	second := start(t, localpg.Options{Dir: dir})
	require.True(t, second.Attached())
	require.Nil(t, second.Done())
	require.Equal(t, first.URL(), second.URL())
	require.NoError(t, second.Stop(t.Context()))
	require.Equal(t, "1", query(t, first.URL(), "select '1'"), "stopping an attached instance leaves the server running")
}

func TestConcurrentFirstStarts(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	var wg sync.WaitGroup
	instances := make([]*localpg.Instance, 3)
	errs := make([]error, len(instances))
	for i := range instances {
		wg.Go(func() {
			instances[i], errs[i] = localpg.Start(t.Context(), localpg.Options{Dir: dir, Volatile: true})
		})
	}
	wg.Wait()
	starters := 0
	for i, instance := range instances {
		require.NoError(t, errs[i])
		defer func() { require.NoError(t, instance.Stop(context.Background())) }()
		if !instance.Attached() {
			starters++
		}
	}
	require.Equal(t, 1, starters)
}

func TestStalePidFile(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	first := start(t, localpg.Options{Dir: dir})
	query(t, first.URL(), "create table kept as select 'all' as word")
	require.NoError(t, first.Stop(t.Context()))
	const nobodysPid = 1<<22 - 1
	stale := fmt.Sprintf("%d\n%s\n0\n5432\n%s\n", nobodysPid, filepath.Join(dir, "data"), filepath.Join(dir, "run"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "data", "postmaster.pid"), []byte(stale), 0o644))

	second := start(t, localpg.Options{Dir: dir})
	require.False(t, second.Attached())
	require.Equal(t, "all", query(t, second.URL(), "select word from kept"))
}

func TestLongPath(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(openDir(t), strings.Repeat("long/", 30))
	instance := start(t, localpg.Options{Dir: dir})
	parsed, err := url.Parse(instance.URL())
	require.NoError(t, err)
	socket := parsed.Query().Get("host")
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(socket)) })
	require.False(t, strings.HasPrefix(socket, dir), "the socket is not where its path would be too long")
	require.Equal(t, "1", query(t, instance.URL(), "select '1'"))
}

func TestForeignDirectoriesAreRejected(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]map[string]string{
		"a folder of that name":          {"data/notes.txt": "mine"},
		"an empty folder of that name":   {"data/": ""},
		"a cluster without our password": {"data/PG_VERSION": "15\n"},
		"a cluster itself":               {"PG_VERSION": "15\n", "base/1": ""},
		"a cluster of another major":     {"data/PG_VERSION": "12\n", "password": "secret\n"},
		"a damaged cluster":              {"data/PG_VERSION": "", "password": "secret\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := openDir(t)
			for path, text := range files {
				path, isDir := filepath.Join(dir, path), strings.HasSuffix(path, "/")
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
				if isDir {
					require.NoError(t, os.MkdirAll(path, 0o755))
				} else {
					require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
				}
			}
			before := snapshot(t, dir)
			_, err := localpg.Start(t.Context(), localpg.Options{Dir: dir})
			require.Error(t, err)
			require.Empty(t, cmp.Diff(before, snapshot(t, dir)))
		})
	}
}

func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	tree := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		tree[path] = fmt.Sprintf("%s %s", info.Mode(), info.ModTime())
		return nil
	}))
	return tree
}

// Root runs the server as another user, who must be able to reach the data.
func TestUnreachableForServersUser(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	closed := filepath.Join(dir, "closed")
	require.NoError(t, os.Mkdir(closed, 0o700))
	place := filepath.Join(closed, "pg")
	if os.Geteuid() != 0 {
		start(t, localpg.Options{Dir: place})
		return
	}
	_, err := localpg.Start(t.Context(), localpg.Options{Dir: place})
	require.ErrorContains(t, err, closed)
	require.ErrorContains(t, err, "AUTOPOST_DATA_DIR")
	require.NoDirExists(t, place)
}

func TestCancelledStart(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := localpg.Start(ctx, localpg.Options{Dir: openDir(t)})
	require.Error(t, err)
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	for _, o := range []localpg.Options{{}, {Dir: openDir(t), MaxConnections: -1}} {
		_, err := localpg.Start(t.Context(), o)
		require.Error(t, err)
	}
}
