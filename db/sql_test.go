package db_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"autopost/internal/pgtest"
)

// TestContracts runs every pgTAP file of db/tests against a database of its own.
func TestContracts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("tests/*.sql")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".sql")
		if name == "fake_clock" || name == "world" {
			continue // included by the others
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runContract(t, file)
		})
	}
}

func runContract(t *testing.T, file string) {
	script := readScript(t, file)
	require.Regexp(t, `(?s)^(--[^\n]*\n)*begin;.*\nrollback;\n$`, script, "a contract leaves nothing behind")
	db := pgtest.New(t)
	if err := db.Err(`create extension pgtap with schema public`); err != nil {
		t.Fatalf("pgTAP is missing (make setup installs it): %v", err)
	}
	conn, err := pgx.Connect(t.Context(), db.URL(""))
	require.NoError(t, err)
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
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
