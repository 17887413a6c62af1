// Package pgtest gives each test its own migrated PostgreSQL database.
//
//	db := pgtest.New(t)
//	db.Exec(`insert into …`)
//	n := pgtest.Value[int](db, `select count(*) from autopost.deliveries`)
//	store := open(db.URL("autopost_engine"))
//
// The first call in a test process starts a private, non-durable PostgreSQL and migrates a template.
// Each further database is a copy, which takes some tens of milliseconds. All data is removed when the
// process ends, also after a panic or a kill; no TestMain is needed. Tests may run in parallel.
//
// Without PostgreSQL the tests fail and print how to install it; they never skip.
package pgtest

import (
	"context"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"autopost/internal/testing/wait"
)

// DB is the database of one test. Its methods run as the superuser and fail the test if their statement
// fails, so call them on the test's own goroutine.
type DB struct {
	t      testing.TB
	server *server
	name   string
	pool   *pgxpool.Pool

	mu    sync.Mutex
	roles map[string]string
}

// New returns a fresh copy of the migrated template. It is dropped when the test ends.
func New(t testing.TB) *DB {
	t.Helper()
	s, err := shared()
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	return s.copied(t)
}

// NewAlone is like New, on the test's own server, which the test may stop and start.
func NewAlone(t testing.TB) *DB {
	t.Helper()
	s, err := startServer()
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	return s.copied(t)
}

// StopServer disconnects all clients and stops the server of NewAlone.
func (db *DB) StopServer() {
	db.t.Helper()
	if err := db.server.instance.Stop(db.t.Context()); err != nil {
		db.t.Fatalf("pgtest: %v", err)
	}
}

// StartServer starts the server that StopServer stopped, at the same address.
func (db *DB) StartServer() {
	db.t.Helper()
	if err := db.server.start(db.t.Context()); err != nil {
		db.t.Fatalf("pgtest: %v", err)
	}
	db.pool.Reset() // its connections ended with the stop
}

// Configure adds settings to the stopped server, as "name=value".
func (db *DB) Configure(settings ...string) {
	db.server.options.Settings = append(db.server.options.Settings, settings...)
}

// Relocate moves a folder of the stopped server's data, such as "base" or "pg_wal", to another folder,
// which may be on another disk.
func (db *DB) Relocate(part, into string) {
	db.t.Helper()
	from, to := filepath.Join(db.server.options.Dir, "data", part), filepath.Join(into, part)
	if out, err := exec.CommandContext(db.t.Context(), "cp", "-a", from, to).CombinedOutput(); err != nil {
		db.t.Fatalf("pgtest: %s", out)
	}
	if err := errors.Join(os.RemoveAll(from), os.Symlink(to, from)); err != nil {
		db.t.Fatalf("pgtest: %v", err)
	}
}

// copied creates a copy of the template.
func (s *server) copied(t testing.TB) *DB {
	t.Helper()
	db := &DB{t: t, server: s, name: s.nextName(), roles: map[string]string{}}
	// The strategy wal_log needs five times the processor time.
	copying := s.copyOnNodes
	if s.nodes == nil {
		copying = func(ctx context.Context, name string) error {
			return s.exec(ctx, "create database "+name+" template "+s.template+" strategy file_copy")
		}
	}
	if err := copying(t.Context(), db.name); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(db.drop)
	config, err := pgxpool.ParseConfig(s.database(db.name))
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	config.MaxConns = 4
	config.ConnConfig.RuntimeParams["application_name"] = "pgtest"
	if db.pool, err = pgxpool.NewWithConfig(t.Context(), config); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(db.pool.Close)
	return db
}

// drop removes the database and its login roles, even if clients are connected.
func (db *DB) drop() {
	ctx, cancel := context.WithTimeout(context.Background(), wait.Bound)
	defer cancel()
	var statements []string
	for _, login := range db.roles {
		statements = append(statements, "drop role "+login)
	}
	if err := errors.Join(db.server.dropDatabase(ctx, db.name), db.server.execEverywhere(ctx, statements...)); err != nil {
		db.t.Errorf("pgtest: %v", err)
	}
}

// URL returns a DSN of the database for a login role of this test. The login role is a member of the
// given role: autopost_engine, autopost_caller, autopost_reader or autopost_owner, or the short forms
// "engine" and so on. "" is the superuser.
func (db *DB) URL(role string) string {
	db.t.Helper()
	if role == "" {
		return db.server.database(db.name)
	}
	role = "autopost_" + strings.TrimPrefix(role, "autopost_")
	db.mu.Lock()
	defer db.mu.Unlock()
	login, ok := db.roles[role]
	if !ok {
		login = db.name + "_" + strings.TrimPrefix(role, "autopost_")
		// The password is not secret: only processes of this user can reach the server.
		err := db.server.execEverywhere(db.t.Context(), "create role "+pgx.Identifier{login}.Sanitize()+
			" login password '"+login+"' in role "+pgx.Identifier{role}.Sanitize())
		if err != nil {
			db.t.Fatalf("pgtest: %v", err)
		}
		db.roles[role] = login
	}
	u := *db.server.url
	u.User, u.Path = url.UserPassword(login, login), "/"+db.name
	return u.String()
}

// Exec runs a statement, or several statements if there are no arguments.
func (db *DB) Exec(sql string, args ...any) {
	db.t.Helper()
	if _, err := db.pool.Exec(db.t.Context(), sql, args...); err != nil {
		db.t.Fatalf("pgtest: %s: %v", sql, err)
	}
}

// Err runs a statement and returns its error.
func (db *DB) Err(sql string, args ...any) error {
	_, err := db.pool.Exec(db.t.Context(), sql, args...)
	return err
}

// QueryRow runs a query for its first row.
func (db *DB) QueryRow(sql string, args ...any) pgx.Row {
	return db.pool.QueryRow(db.t.Context(), sql, args...)
}

// JSON runs a query for one JSON object.
func (db *DB) JSON(sql string, args ...any) map[string]any {
	db.t.Helper()
	return Value[map[string]any](db, sql, args...)
}

// Value runs a query for one row with one column.
func Value[T any](db *DB, sql string, args ...any) T {
	db.t.Helper()
	rows, err := db.pool.Query(db.t.Context(), sql, args...)
	if err != nil {
		db.t.Fatalf("pgtest: %s: %v", sql, err)
	}
	value, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	if err != nil {
		db.t.Fatalf("pgtest: %s: %v", sql, err)
	}
	return value
}

// Column runs a query for any number of rows with one column.
func Column[T any](db *DB, sql string, args ...any) []T {
	db.t.Helper()
	rows, err := db.pool.Query(db.t.Context(), sql, args...)
	if err != nil {
		db.t.Fatalf("pgtest: %s: %v", sql, err)
	}
	values, err := pgx.CollectRows(rows, pgx.RowTo[T])
	if err != nil {
		db.t.Fatalf("pgtest: %s: %v", sql, err)
	}
	return values
}
