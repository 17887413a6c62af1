package db_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/stretchr/testify/require"

	"autopost/internal/pgtest"
)

// coverageGoal is the share of the branches that the contracts must reach, of those
// that tests/uncovered.txt does not except.
const coverageGoal = 0.95

// statement is one of a PL/pgSQL function, as plpgsql_check's profiler counts it.
type statement struct {
	ID     int
	Parent *int
	Note   *string // which list of its parent it stands in: "then body", "else body", "loop body", "exception 1", …
	Line   int
	Name   string
	Runs   int64
}

// branch is a way that a function may take: an arm of an if or a case, also the else
// that is not written, the body of a loop, an exception handler, the function itself.
type branch struct {
	function, way, source string
	line                  int
	taken                 bool
}

// name is what tests/uncovered.txt calls it: line numbers move, words stay.
func (b branch) name() string {
	return fmt.Sprintf("%s: %s of %s", b.function, b.way, b.source)
}

// covered is what the contracts reached of one function.
type covered struct {
	name                string
	statements, reached int
	branches            []branch
}

// TestCoverage runs all contracts one after another in one session, because a
// profile belongs to its session, and counts which statements and branches of the
// PL/pgSQL functions they reach. Functions in SQL have no branches of their own.
func TestCoverage(t *testing.T) {
	t.Parallel()
	base := pgtest.New(t)
	require.NoError(t, base.Err(`create extension pgtap with schema public; create extension plpgsql_check with schema public`))
	conn, err := pgx.Connect(t.Context(), base.URL(""))
	require.NoError(t, err)
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	_, err = conn.Exec(t.Context(), `load 'plpgsql'; load 'plpgsql_check'; set plpgsql_check.profiler = on`)
	require.NoError(t, err)
	files, err := filepath.Glob("tests/*.sql")
	require.NoError(t, err)
	for _, file := range files {
		if name := filepath.Base(file); name != "fake_clock.sql" && name != "world.sql" {
			lines, err := scriptLines(t.Context(), conn, readScript(t, file))
			require.NoError(t, err, file)
			require.Empty(t, judge(lines), file)
		}
	}
	askVectors(t, conn)
	functions := profiles(t, conn)
	argued := exceptions(t)
	var open []string
	total, taken, excused := 0, 0, 0
	for _, f := range functions {
		for _, b := range f.branches {
			_, excepted := argued[b.name()]
			switch {
			case b.taken:
				total, taken = total+1, taken+1
				require.False(t, excepted, "%s is covered by now: take it out of tests/uncovered.txt", b.name())
			case excepted:
				excused++
			default:
				total++
				open = append(open, fmt.Sprintf("line %d, %s", b.line, b.name()))
			}
		}
	}
	share := float64(taken) / float64(total)
	require.Equal(t, len(argued), excused, "tests/uncovered.txt names branches that are not there any more")
	t.Logf("\n%s\n%d of %d branches, %.1f %%; %d more are excepted. Not reached:\n%s\n", coverageTable(functions), taken, total, 100*share, excused, strings.Join(open, "\n"))
	require.Greater(t, total, 500)
	require.GreaterOrEqual(t, share, coverageGoal, "more branches than that no contract reaches: see above")
}

// askVectors asks what the tests of the vectors ask; they judge the answers.
func askVectors(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	for file, sql := range map[string]string{
		"urls.json":     `select autopost.canonical_url(v ->> 'in') from jsonb_array_elements($1::jsonb) v`,
		"payloads.json": `select autopost.payload_errors(v -> 'raw'), autopost.content_hash(autopost.normalize_payload(v -> 'raw')) from jsonb_array_elements($1::jsonb) v`,
		"markup.json": `select autopost.render_text(v ->> 'text', null, nullif(v ->> 'mode', ''), d)
			from jsonb_array_elements($1::jsonb) v, unnest('{telegram_html,max_html,plain}'::text[]) d`,
	} {
		vectors, err := os.ReadFile("tests/vectors/" + file)
		require.NoError(t, err)
		_, err = conn.Exec(t.Context(), sql, string(vectors))
		require.NoError(t, err, file)
	}
}

// profiles reads what the session's profiler counted.
func profiles(t *testing.T, conn *pgx.Conn) []covered {
	t.Helper()
	type row struct {
		Name, Source string
		Statements   []statement
	}
	rows, err := conn.Query(t.Context(), `
		select p.proname::text, p.prosrc, coalesce((
			select jsonb_agg(jsonb_build_object('ID', s.stmtid, 'Parent', s.parent_stmtid, 'Note', s.parent_note, 'Line', s.lineno, 'Name', s.stmtname,
				'Runs', s.exec_stmts) order by s.stmtid)
			from plpgsql_profiler_function_statements_tb(p.oid) s), '[]')
		from pg_proc p join pg_language l on l.oid = p.prolang
		where p.pronamespace = 'autopost'::regnamespace and l.lanname = 'plpgsql'
		order by p.proname, p.oid`)
	require.NoError(t, err)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[row])
	require.NoError(t, err)
	var all []covered
	for _, f := range found {
		c := covered{name: f.Name, statements: len(f.Statements), branches: branches(f.Name, strings.Split(f.Source, "\n"), f.Statements)}
		for _, s := range f.Statements {
			if s.Runs > 0 {
				c.reached++
			}
		}
		all = append(all, c)
	}
	return all
}

// branches finds the ways through a function in the tree of its statements.
func branches(function string, source []string, statements []statement) []branch {
	if len(statements) == 0 {
		return []branch{{function: function, way: "body", source: "the function"}}
	}
	at := func(line int) string {
		if line < 1 || line > len(source) {
			return "?"
		}
		return strings.TrimSpace(source[line-1])
	}
	ways := []branch{{function: function, way: "body", source: "the function", line: statements[0].Line, taken: statements[0].Runs > 0}}
	for _, parent := range statements {
		arms, entered := map[string]bool{}, int64(0)
		for _, s := range statements {
			if s.Parent == nil || *s.Parent != parent.ID || *s.Note == "body" || arms[*s.Note] {
				continue
			}
			arms[*s.Note] = true
			entered += s.Runs
			ways = append(ways, branch{function: function, way: *s.Note, source: at(parent.Line) + " … " + at(s.Line), line: s.Line, taken: s.Runs > 0})
		}
		if parent.Name == "IF" && !arms["else body"] {
			ways = append(ways, branch{function: function, way: "no arm", source: at(parent.Line), line: parent.Line, taken: parent.Runs > entered})
		}
	}
	return ways
}

// exceptions reads tests/uncovered.txt: a branch, as its name says, and below it, indented, why no contract reaches it.
func exceptions(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("tests/uncovered.txt")
	require.NoError(t, err)
	argued := map[string]string{}
	last := ""
	for line := range strings.Lines(string(text)) {
		switch {
		case strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "":
		case strings.HasPrefix(line, "\t"):
			argued[last] += strings.TrimSpace(line)
		default:
			last = strings.TrimSpace(line)
			argued[last] = ""
		}
	}
	for name, why := range argued {
		require.NotEmpty(t, why, "no reason is given for %s", name)
	}
	return argued
}

func coverageTable(functions []covered) string {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.AppendHeader(table.Row{"function", "statements", "branches"})
	percent := func(of, all int) string {
		return fmt.Sprintf("%3d of %3d  %3.0f %%", of, all, 100*float64(of)/float64(max(1, all)))
	}
	for _, f := range slices.SortedFunc(slices.Values(functions), func(a, b covered) int { return strings.Compare(a.name, b.name) }) {
		taken := 0
		for _, b := range f.branches {
			if b.taken {
				taken++
			}
		}
		t.AppendRow(table.Row{f.name, percent(f.reached, f.statements), percent(taken, len(f.branches))})
	}
	return t.Render()
}
