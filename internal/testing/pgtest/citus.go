package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"autopost/internal/pg/schema"
	"autopost/internal/testing/wait"
)

// clusterFolder is the variable with the folder of a running Citus cluster (test/citus/cluster.sh). Then New gives
// each test a database of that cluster.
const clusterFolder = "AUTOPOST_TEST_CITUS"

// citusSettings are settings of each database: a copy does not take them from its template.
var citusSettings = []string{"citus.allow_nested_distributed_execution", "citus.enable_unsafe_triggers"}

// startCluster connects to the running cluster and makes the template, unless another process has made it.
func startCluster(dir string) (*server, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*wait.Bound)
	defer cancel()
	first, err := os.ReadFile(filepath.Join(dir, "port"))
	if err != nil {
		return nil, fmt.Errorf("%s must name the folder of a running cluster: make test-citus starts one: %w", clusterFolder, err)
	}
	port, err := strconv.Atoi(strings.TrimSpace(string(first)))
	if err != nil {
		return nil, err
	}
	s := &server{template: template}
	for n := range 3 {
		node := &url.URL{Scheme: "postgres", User: url.User("postgres"), Host: "127.0.0.1:" + strconv.Itoa(port+n), Path: "/postgres", RawQuery: "sslmode=disable"}
		conn, err := pgx.Connect(ctx, node.String())
		if err != nil {
			return nil, fmt.Errorf("node %d of the cluster: %w", n, err)
		}
		s.nodes, s.nodeURLs = append(s.nodes, conn), append(s.nodeURLs, node)
	}
	s.admin, s.url = s.nodes[0], s.nodeURLs[0]
	return s, s.prepareCluster(ctx, dir)
}

// prepareCluster makes the template, one process at a time. Its name has the digest of the schema.
func (s *server) prepareCluster(ctx context.Context, dir string) (err error) {
	digest, err := schema.FunctionsDigest()
	if err != nil {
		return err
	}
	s.template = template + "_" + digest[:12]
	lock, err := os.OpenFile(filepath.Join(dir, "template.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	var ready bool
	query := `select exists (select 1 from pg_catalog.pg_database d where d.datname = $1 and d.datistemplate)`
	if err := s.admin.QueryRow(ctx, query, s.template).Scan(&ready); err != nil || ready {
		return err
	}
	if err := s.makeClusterTemplate(ctx); err != nil {
		return fmt.Errorf("make the template of the cluster: %w", err)
	}
	return s.onNodes(ctx, "alter database "+s.template+" with is_template true allow_connections false")
}

func (s *server) makeClusterTemplate(ctx context.Context) error {
	if err := s.onNodes(ctx, "drop database if exists "+s.template); err != nil {
		return err
	}
	if err := s.onNodes(ctx, "create database "+s.template); err != nil {
		return err
	}
	for n := range s.nodes {
		if err := execAt(ctx, s.node(n, s.template), "create extension citus"); err != nil {
			return err
		}
	}
	statements := []string{fmt.Sprintf("select citus_set_coordinator_host('127.0.0.1', %s)", s.nodeURLs[0].Port())}
	for _, worker := range s.nodeURLs[1:] {
		statements = append(statements, fmt.Sprintf("select citus_add_node('127.0.0.1', %s)", worker.Port()))
	}
	statements = append(statements, fmt.Sprintf("select citus_set_node_property('127.0.0.1', %s, 'shouldhaveshards', false)", s.nodeURLs[0].Port()))
	if err := execAt(ctx, s.database(s.template), statements...); err != nil {
		return err
	}
	return schema.Migrate(ctx, s.database(s.template))
}

// execAt runs statements on a connection of their own.
func execAt(ctx context.Context, address string, statements ...string) error {
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return err
	}
	for _, sql := range statements {
		if _, err = conn.Exec(ctx, sql); err != nil {
			err = fmt.Errorf("%s: %w", sql, err)
			break
		}
	}
	return errors.Join(err, conn.Close(ctx))
}

// copyOnNodes copies the template on each node.
func (s *server) copyOnNodes(ctx context.Context, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := range s.nodes {
		if err := s.connectNode(ctx, n); err != nil {
			return err
		}
		node := s.nodes[n]
		if err := copyOnNode(ctx, node, name, s.template); err != nil {
			return fmt.Errorf("copy the template on node %d: %w", n, err)
		}
		for _, setting := range citusSettings {
			if _, err := node.Exec(ctx, "alter database "+name+" set "+setting+" = on"); err != nil {
				return err
			}
		}
	}
	return nil
}

// copyOnNode copies the template on a node.
func copyOnNode(ctx context.Context, node *pgx.Conn, name, template string) error {
	return withoutClients(ctx, node, template, "create database "+name+" template "+template+" strategy file_copy")
}

// withoutClients runs a statement that needs a database without clients. It ends the clients, such as the maintenance
// worker of Citus, which returns now and then, until the statement succeeds.
func withoutClients(ctx context.Context, node *pgx.Conn, database, sql string) error {
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for {
		if _, err := node.Exec(ctx, `select pg_terminate_backend(a.pid) from pg_catalog.pg_stat_activity a where a.datname = $1`, database); err != nil {
			return err
		}
		_, err := node.Exec(ctx, sql)
		if err == nil || !strings.Contains(err.Error(), "being accessed by other users") {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-poll.C:
		}
	}
}

// execEverywhere is exec on each node of a cluster.
func (s *server) execEverywhere(ctx context.Context, statements ...string) error {
	if s.nodes == nil {
		return s.exec(ctx, statements...)
	}
	for _, sql := range statements {
		if err := s.onNodes(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

// onNodes runs a statement on each node.
func (s *server) onNodes(ctx context.Context, sql string) error {
	return s.eachNode(ctx, func(node *pgx.Conn) error {
		if _, err := node.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
		return nil
	})
}

// eachNode calls do with a connection to each node.
func (s *server) eachNode(ctx context.Context, do func(node *pgx.Conn) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := range s.nodes {
		if err := s.connectNode(ctx, n); err != nil {
			return err
		}
		if err := do(s.nodes[n]); err != nil {
			return err
		}
	}
	return nil
}

// dropDatabase drops a database, on each node of a cluster.
func (s *server) dropDatabase(ctx context.Context, name string) error {
	sql := "drop database " + name + " with (force)"
	if s.nodes == nil {
		return s.exec(ctx, sql)
	}
	return s.eachNode(ctx, func(node *pgx.Conn) error { return withoutClients(ctx, node, name, sql) })
}

// node returns the superuser's DSN of a database on a node.
func (s *server) node(n int, name string) string {
	u := *s.nodeURLs[n]
	u.Path = "/" + name
	return u.String()
}

// connectNode replaces the connection to a node that has ended.
func (s *server) connectNode(ctx context.Context, n int) error {
	if !s.nodes[n].IsClosed() && s.nodes[n].Ping(ctx) == nil {
		return nil
	}
	conn, err := pgx.Connect(ctx, s.nodeURLs[n].String())
	if err != nil {
		return fmt.Errorf("node %d of the cluster: %w", n, err)
	}
	s.nodes[n] = conn
	if n == 0 {
		s.admin = conn
	}
	return nil
}

// clusterScript is the variable with the path of test/citus/cluster.sh, for tests that end nodes.
const clusterScript = "AUTOPOST_TEST_CITUS_SCRIPT"

// KillNode ends a node of the cluster as a crash does. Tests that run beside this one lose it too. The end of the test
// starts it again.
func (db *DB) KillNode(n int) {
	db.t.Helper()
	db.t.Cleanup(func() { db.StartNodes() })
	db.control("kill", strconv.Itoa(n))
}

// StartNodes starts the nodes that KillNode ended.
func (db *DB) StartNodes() {
	db.t.Helper()
	db.control("start")
	ctx, cancel := context.WithTimeout(context.Background(), wait.Bound)
	defer cancel()
	for n := range db.server.nodes {
		if err := db.server.connectNode(ctx, n); err != nil {
			db.t.Fatalf("pgtest: %v", err)
		}
	}
}

func (db *DB) control(act string, args ...string) {
	db.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), wait.Bound)
	defer cancel()
	all := append([]string{os.Getenv(clusterScript), act, os.Getenv(clusterFolder)}, args...)
	if out, err := exec.CommandContext(ctx, "sh", all...).CombinedOutput(); err != nil {
		db.t.Fatalf("pgtest: cluster.sh %s %v: %v: %s", act, args, err, out)
	}
}

// OnNode returns the database for statements on a node of the cluster: 0 is the coordinator.
func (db *DB) OnNode(n int) *DB {
	db.t.Helper()
	config, err := pgxpool.ParseConfig(db.NodeURL(n, ""))
	if err != nil {
		db.t.Fatalf("pgtest: %v", err)
	}
	config.MaxConns = 2
	config.ConnConfig.RuntimeParams["application_name"] = "pgtest"
	pool, err := pgxpool.NewWithConfig(db.t.Context(), config)
	if err != nil {
		db.t.Fatalf("pgtest: %v", err)
	}
	db.t.Cleanup(pool.Close)
	return &DB{t: db.t, server: db.server, name: db.name, pool: pool, roles: db.roles}
}

// OnCluster reports whether the database is one of a Citus cluster.
func (db *DB) OnCluster() bool { return db.server.nodes != nil }

// Share lets each node of a cluster use a table that a test has made, such as one that a trigger writes.
func (db *DB) Share(table string) {
	db.t.Helper()
	if db.OnCluster() {
		db.Exec(`select create_reference_table($1::text::regclass)`, table)
	}
}

// NodeURL is URL for a node of the cluster: 0 is the coordinator.
func (db *DB) NodeURL(n int, role string) string {
	db.t.Helper()
	u, err := url.Parse(db.URL(role))
	if err != nil {
		db.t.Fatalf("pgtest: %v", err)
	}
	u.Host = db.server.nodeURLs[n].Host
	return u.String()
}
