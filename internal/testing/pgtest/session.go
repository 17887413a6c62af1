package pgtest

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"autopost/internal/testing/wait"
)

// Session is a named connection for race tests: its statements interleave with those of other sessions
// in the order that the test defines.
//
//	a, b := db.Session("a", "engine"), db.Session("b", "engine")
//	a.Exec(`begin`)
//	a.Exec(`select … for update`)
//	waiting := b.Start(`update …`)
//	require.Equal(t, []string{"a"}, waiting.Blocked())
//	a.Exec(`commit`)
//	waiting.Wait()
type Session struct {
	t    testing.TB
	db   *DB
	name string
	conn *pgx.Conn
}

// Pending is a running statement.
type Pending struct {
	session *Session
	sql     string
	done    chan struct{}
	rows    [][]any
	err     error
}

// Session opens a connection as DB.URL(role) does. It is closed when the test ends.
func (db *DB) Session(name, role string) *Session {
	db.t.Helper()
	config, err := pgx.ParseConfig(db.URL(role))
	if err != nil {
		db.t.Fatalf("pgtest: session %s: %v", name, err)
	}
	config.RuntimeParams["application_name"] = name
	conn, err := pgx.ConnectConfig(db.t.Context(), config)
	if err != nil {
		db.t.Fatalf("pgtest: session %s: %v", name, err)
	}
	db.t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return &Session{t: db.t, db: db, name: name, conn: conn}
}

// PID is the process id of the session's server process.
func (s *Session) PID() uint32 { return s.conn.PgConn().PID() }

// Start sends a statement and returns at once. The session's previous statement must have ended.
func (s *Session) Start(sql string, args ...any) *Pending {
	p := &Pending{session: s, sql: sql, done: make(chan struct{})}
	ctx := s.t.Context()
	go func() {
		defer close(p.done)
		rows, err := s.conn.Query(ctx, sql, args...)
		if err != nil {
			p.err = err
			return
		}
		p.rows, p.err = pgx.CollectRows(rows, func(row pgx.CollectableRow) ([]any, error) { return row.Values() })
	}()
	return p
}

// Exec runs a statement, which must succeed, and returns its rows.
func (s *Session) Exec(sql string, args ...any) [][]any {
	s.t.Helper()
	return s.Start(sql, args...).Wait()
}

// Wait returns the rows of the statement, which must succeed.
func (p *Pending) Wait() [][]any {
	p.session.t.Helper()
	if err := p.Err(); err != nil {
		p.session.t.Fatalf("pgtest: session %s: %s: %v", p.session.name, p.sql, err)
	}
	return p.rows
}

// Err waits for the end of the statement and returns its error.
func (p *Pending) Err() error {
	p.session.t.Helper()
	select {
	case <-p.done:
		return p.err
	case <-time.After(wait.Bound):
		p.session.t.Fatalf("pgtest: session %s: still running after %s: %s", p.session.name, wait.Bound, p.sql)
		return nil
	}
}

// Blocked waits until the statement waits for a lock. It returns the names of the sessions that block
// it, sorted. It fails the test if the statement ends instead.
func (p *Pending) Blocked() []string {
	p.session.t.Helper()
	blockers := p.Settled()
	if len(blockers) == 0 {
		p.session.t.Fatalf("pgtest: session %s did not block: %s (error: %v)", p.session.name, p.sql, p.err)
	}
	return blockers
}

// Settled waits until the statement has ended or waits for a lock. It returns the names of the sessions
// that block it, sorted; none if it has ended.
func (p *Pending) Settled() []string {
	p.session.t.Helper()
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	deadline := time.After(wait.Bound)
	pid := p.session.conn.PgConn().PID()
	for {
		select {
		case <-p.done:
			return nil
		case <-deadline:
			p.session.t.Fatalf("pgtest: session %s neither blocks nor ends: %s", p.session.name, p.sql)
		case <-poll.C:
		}
		blockers := Column[string](p.session.db, `
			select distinct application_name from pg_catalog.pg_stat_activity
			where pid = any (pg_catalog.pg_blocking_pids($1)) order by 1`, pid)
		if len(blockers) > 0 {
			return blockers
		}
	}
}
