package db_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
)

// TestContracts runs every pgTAP file of db/tests, then judges which branches of the PL/pgSQL
// functions they reached. Contracts share databases, because each one rolls back.
func TestContracts(t *testing.T) {
	t.Parallel()
	files := contractFiles(t)
	sessions := &contractSessions{t: t}
	var passed atomic.Int64
	t.Run("files", func(t *testing.T) {
		for _, file := range files {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".sql"), func(t *testing.T) {
				t.Parallel()
				alone := slices.Contains(needNewDatabase, filepath.Base(file))
				conn := sessions.take(t, alone)
				if !alone {
					defer sessions.release(conn)
				}
				runContract(t, conn, file)
				if !t.Failed() {
					passed.Add(1)
				}
			})
		}
	})
	if int(passed.Load()) == len(files) { // not after a failure, nor with -run of some contracts
		t.Run("coverage", func(t *testing.T) { judgeCoverage(t, sessions.all) })
	}
}

// contractFiles lists the contracts. The other files of the folder are included by contracts.
func contractFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("tests/*.sql")
	require.NoError(t, err)
	files = slices.DeleteFunc(files, func(file string) bool {
		return slices.Contains([]string{"fake_clock.sql", "world.sql", "wrong_calls.sql", "bot_talks.sql"}, filepath.Base(file))
	})
	require.NotEmpty(t, files)
	return files
}

// needNewDatabase lists contracts whose claims depend on the physical order of equal gates. Rolled back rows
// of other contracts change that order.
var needNewDatabase = []string{"clock_that_jumps.sql"}

// contractSessions lends sessions with pgTAP and the profiler of plpgsql_check, each in its own
// database. A profile belongs to its session, so sessions stay open until the end of the test.
type contractSessions struct {
	t    *testing.T
	mu   sync.Mutex
	free []*pgx.Conn
	all  []*pgx.Conn
}

func (s *contractSessions) take(t *testing.T, alone bool) *pgx.Conn {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if last := len(s.free) - 1; last >= 0 && !alone {
		conn := s.free[last]
		s.free = s.free[:last]
		return conn
	}
	base := pgtest.New(s.t)
	if len(s.all) == 0 { // a vacuum between two contracts changes the order of rows that are equal for a function
		base.Exec(`alter system set autovacuum = off`)
		base.Exec(`select pg_reload_conf()`)
	}
	if err := base.Err(`create extension pgtap with schema public; create extension plpgsql_check with schema public`); err != nil {
		t.Fatalf("pgTAP or plpgsql_check is missing (make setup installs them): %v", err)
	}
	conn, err := pgx.Connect(t.Context(), base.URL(""))
	require.NoError(t, err)
	s.t.Cleanup(func() { _ = conn.Close(context.Background()) })
	clock, start := fakeClock(t)
	base.Exec(strings.TrimSuffix(clock, start))
	// A generic plan is made once, not for each of the first six executions.
	_, err = conn.Exec(t.Context(), `load 'plpgsql'; load 'plpgsql_check'; set plpgsql_check.profiler = on; set plan_cache_mode = force_generic_plan`)
	require.NoError(t, err)
	s.all = append(s.all, conn)
	return conn
}

// fakeClock returns tests/fake_clock.sql and its last line, which sets the clock. A contract that replaced the clock itself
// would void all plans of its session.
func fakeClock(t *testing.T) (script, start string) {
	t.Helper()
	text, err := os.ReadFile("tests/fake_clock.sql")
	require.NoError(t, err)
	script = string(text)
	return script, script[strings.LastIndex(strings.TrimSpace(script), "\n")+1:]
}

// release returns a session. It ends the transaction of a contract that failed.
func (s *contractSessions) release(conn *pgx.Conn) {
	_, _ = conn.Exec(context.Background(), `rollback; select pg_advisory_unlock_all()`) // the next contract fails if the session is broken
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, conn)
}

func runContract(t *testing.T, conn *pgx.Conn, file string) {
	script := readScript(t, file)
	require.Regexp(t, `(?s)^(--[^\n]*\n)*begin;.*\nrollback;\n$`, script, "a contract rolls back")
	lines, err := scriptLines(t.Context(), conn, script)
	if failure := judge(lines); failure != "" {
		t.Error(failure)
	}
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok {
		t.Fatalf("%s %s\nhint: %s\nwhere: %s", pgErr.Code, pgErr.Message, pgErr.Hint, pgErr.Where)
	}
	require.NoError(t, err)
}

var includeLine = regexp.MustCompile(`(?m)^\\ir (\S+)\n`)

// readScript reads a psql script; \ir, the one meta command in use, is resolved here.
func readScript(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return includeLine.ReplaceAllStringFunc(string(text), func(line string) string {
		name := includeLine.FindStringSubmatch(line)[1]
		if name == "fake_clock.sql" {
			_, start := fakeClock(t)
			return start
		}
		return readScript(t, filepath.Join(filepath.Dir(file), name))
	})
}

// scriptLines runs a script statement by statement and returns what it printed,
// also when it ended by an error.
func scriptLines(ctx context.Context, conn *pgx.Conn, script string) ([]string, error) {
	var lines []string
	results := conn.PgConn().Exec(ctx, script)
	for results.NextResult() {
		reader := results.ResultReader()
		for reader.NextRow() {
			for _, value := range reader.Values() {
				lines = append(lines, strings.Split(string(value), "\n")...)
			}
		}
	}
	return lines, results.Close()
}

var (
	planLine = regexp.MustCompile(`^1\.\.(\d+)$`)
	okLine   = regexp.MustCompile(`^ok \d+`)
	badLine  = regexp.MustCompile(`^(not ok \d+|Bail out!)`)
	aside    = regexp.MustCompile(`(?i)# *(skip|todo)`)
)

// judge reads the Test Anything Protocol; the answer is empty when all is well.
func judge(lines []string) string {
	plan, passed := "", 0
	var bad []string
	for _, line := range lines {
		switch {
		case planLine.MatchString(line):
			plan = planLine.FindStringSubmatch(line)[1]
		case aside.MatchString(line):
			bad = append(bad, "a test was put aside: "+line)
		case okLine.MatchString(line):
			passed++
		case badLine.MatchString(line), strings.HasPrefix(line, "#"):
			bad = append(bad, line)
		}
	}
	if ran := fmt.Sprint(passed); len(bad) == 0 && ran != plan {
		bad = append(bad, fmt.Sprintf("planned %q tests, %s passed", plan, ran))
	}
	return strings.Join(bad, "\n")
}

// The runner itself must not be deaf.
func TestJudge(t *testing.T) {
	t.Parallel()
	require.Empty(t, judge([]string{"1..2", "ok 1 - a", "ok 2 - b", ""}))
	for _, lines := range [][]string{
		{},
		{"1..2", "ok 1"},
		{"1..1", "ok 1", "ok 2"},
		{"1..1", "not ok 1 - a"},
		{"1..1", "ok 1 - a # SKIP no reason"},
		{"1..2", "ok 1", "Bail out!"},
	} {
		require.NotEmpty(t, judge(lines), "%q", lines)
	}
}
