package pgtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"sync"
	"syscall"

	"github.com/jackc/pgx/v5"

	"autopost/internal/localpg"
	"autopost/internal/pg/schema"
	"autopost/internal/testing/wait"
)

const template = "template_autopost"

// server is the PostgreSQL of this test process, or of one test.
type server struct {
	url *url.URL
	// options start the instance again after a test has stopped it.
	options  localpg.Options
	instance *localpg.Instance

	// template is the database that each test copies.
	template string
	// nodes are the connections to the nodes of a Citus cluster, and nodeURLs their addresses; nil for one server.
	nodes    []*pgx.Conn
	nodeURLs []*url.URL

	mu     sync.Mutex
	admin  *pgx.Conn
	lastDB int
	// reaper is the standard input of the reaper process. The kernel closes it when this process ends
	// for any reason.
	reaper io.Closer
}

// shared starts the server for the first test that needs it.
var shared = sync.OnceValues(func() (*server, error) {
	if dir := os.Getenv(clusterFolder); dir != "" {
		return startCluster(dir)
	}
	return startServer()
})

func startServer() (*server, error) {
	ctx, cancel := context.WithTimeout(context.Background(), wait.Bound)
	defer cancel()
	dir, err := os.MkdirTemp(fastFolder(), "pgtest-")
	if err != nil {
		return nil, err
	}
	// If the tests run as root, PostgreSQL runs as another user.
	if err := os.Chmod(dir, 0o711); err != nil {
		return nil, err
	}
	reaper, err := startReaper(dir)
	if err != nil {
		return nil, err
	}
	s := &server{reaper: reaper, template: template, options: localpg.Options{
		Dir: dir + "/pg", BinDir: os.Getenv("AUTOPOST_PG_BIN"), MaxConnections: 200, Volatile: true,
		Settings: []string{"shared_buffers=128MB"},
	}}
	if err := prepare(ctx, s.options); err != nil {
		return nil, err
	}
	return s, s.start(ctx)
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

// startReaper starts a process that outlives this one. It stops the server, if the kernel has not
// stopped it, and removes its directory. A test binary cannot run code after its last test without a
// TestMain in each package.
func startReaper(dir string) (io.Closer, error) {
	// The loop waits for the file, which PostgreSQL removes last. A process id can stay in use by an
	// orphan that is never reaped.
	const script = `cat >/dev/null
file=$1/pg/data/postmaster.pid
pid=$(head -n 1 "$file" 2>/dev/null)
left=600
if [ -n "$pid" ] && kill -INT "$pid" 2>/dev/null; then
	while [ -e "$file" ] && [ $left -gt 0 ]; do sleep 0.05; left=$((left - 1)); done
fi
rm -rf -- "$1"`
	cmd := exec.Command("/bin/sh", "-c", script, "pgtest-reaper", dir) //nolint:noctx // it must outlive this process
	cmd.Dir = "/"
	// Ctrl-C must end the tests but not this cleanup process.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	return stdin, cmd.Start()
}

// makeTemplate creates a server with the migrated database that each test copies, and stops it.
func makeTemplate(ctx context.Context, options localpg.Options) (err error) {
	s := &server{options: options}
	if err := s.start(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.admin.Close(ctx), s.instance.Stop(ctx)) }()
	if _, err := s.admin.Exec(ctx, "create database "+template); err != nil {
		return err
	}
	if err := schema.Migrate(ctx, s.database(template)); err != nil {
		return fmt.Errorf("migrate the template: %w", err)
	}
	if err := makeStrict(ctx, s.database(template)); err != nil {
		return fmt.Errorf("make the events of the template strict: %w", err)
	}
	_, err = s.admin.Exec(ctx, "alter database "+template+" with is_template true allow_connections false")
	return err
}

// makeStrict adds the foreign keys of events, so that every test also checks their references.
func makeStrict(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, `select autopost.set_event_strictness(true)`)
	return errors.Join(err, conn.Close(ctx))
}

// database returns the superuser's DSN of a database.
func (s *server) database(name string) string {
	u := *s.url
	u.Path = "/" + name
	return u.String()
}

// exec runs administrative statements. Calls run one after another.
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

// nextName returns a new database name.
func (s *server) nextName() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastDB++
	if s.nodes != nil { // the processes of a run share the cluster
		return fmt.Sprintf("test_%d_%d", os.Getpid(), s.lastDB)
	}
	return fmt.Sprintf("test_%d", s.lastDB)
}
