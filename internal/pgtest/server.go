package pgtest

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"autopost/internal/localpg"
	"autopost/internal/pg/schema"
)

const template = "template_autopost"

// server is the PostgreSQL of this test process, or of one test.
type server struct {
	url *url.URL
	// options start it again, where a test has stopped the instance.
	options  localpg.Options
	instance *localpg.Instance

	mu     sync.Mutex
	admin  *pgx.Conn
	lastDB int
	// reaper's standard input: the kernel closes it with this process, however it ends.
	reaper io.Closer
}

// shared starts the server at the first test that asks.
var shared = sync.OnceValues(startServer)

func startServer() (*server, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "pgtest-")
	if err != nil {
		return nil, err
	}
	// PostgreSQL runs as another user when the tests run as root.
	if err := os.Chmod(dir, 0o711); err != nil {
		return nil, err
	}
	reaper, err := startReaper(dir)
	if err != nil {
		return nil, err
	}
	s := &server{reaper: reaper, options: localpg.Options{
		Dir: dir + "/pg", BinDir: os.Getenv("AUTOPOST_PG_BIN"), MaxConnections: 200, Volatile: true,
	}}
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	return s, s.makeTemplate(ctx)
}

func (s *server) start(ctx context.Context) (err error) {
	if s.instance, err = localpg.Start(ctx, s.options); err != nil {
		return fmt.Errorf("%w\n(make setup installs what the tests need)", err)
	}
	if s.url, err = url.Parse(s.instance.URL()); err != nil {
		return err
	}
	s.admin, err = pgx.Connect(ctx, s.instance.URL())
	return err
}

// startReaper starts a process that outlives this one, stops the server (where
// the kernel has not done so) and removes its directory. Nothing within a test
// binary runs after the last test unless each package wrote a TestMain for it.
func startReaper(dir string) (io.Closer, error) {
	// The wait ends by the file, which PostgreSQL removes last: an orphan that nobody
	// reaps keeps its process id for ever.
	const script = `cat >/dev/null
file=$1/pg/data/postmaster.pid
pid=$(head -n 1 "$file" 2>/dev/null)
left=600
if [ -n "$pid" ] && kill -INT "$pid" 2>/dev/null; then
	while [ -e "$file" ] && [ $left -gt 0 ]; do sleep 0.05; left=$((left - 1)); done
fi
rm -rf -- "$1"`
	cmd := exec.Command("/bin/sh", "-c", script, "pgtest-reaper", dir) //nolint:noctx // it outlives us by intent
	cmd.Dir = "/"
	// Ctrl-C ends the tests, not the one who cleans up after them.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	return stdin, cmd.Start()
}

// makeTemplate migrates one database, which every test's database is a copy of.
func (s *server) makeTemplate(ctx context.Context) error {
	if _, err := s.admin.Exec(ctx, "create database "+template); err != nil {
		return err
	}
	if err := schema.Migrate(ctx, s.database(template)); err != nil {
		return fmt.Errorf("migrate the template: %w", err)
	}
	_, err := s.admin.Exec(ctx, "alter database "+template+" with is_template true allow_connections false")
	return err
}

// database returns the superuser's DSN of a database.
func (s *server) database(name string) string {
	u := *s.url
	u.Path = "/" + name
	return u.String()
}

// exec runs administrative statements, one caller at a time.
func (s *server) exec(ctx context.Context, statements ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sql := range statements {
		if _, err := s.admin.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	return nil
}

// nextName returns a database name that this process has not used.
func (s *server) nextName() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastDB++
	return fmt.Sprintf("test_%d", s.lastDB)
}
