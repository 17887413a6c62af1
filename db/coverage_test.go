package db_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/stretchr/testify/require"
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

// judgeCoverage adds up the profiles of the sessions that ran all contracts. It fails the test if
// too few branches of the PL/pgSQL functions were reached. Functions in SQL have no branches.
func judgeCoverage(t *testing.T, sessions []*pgx.Conn) {
	askVectors(t, sessions[0])
	functions := profiles(t, sessions)
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

// profiled is a function with its statements and their numbers of runs.
type profiled struct {
	Signature, Name, Source string
	Statements              []statement
}

// profiles adds up the counts of the profilers of the sessions.
func profiles(t *testing.T, sessions []*pgx.Conn) []covered {
	t.Helper()
	total := map[string]profiled{}
	for _, conn := range sessions {
		rows, err := conn.Query(t.Context(), `
			select p.oid::regprocedure::text, p.proname::text, p.prosrc, coalesce((
				select jsonb_agg(jsonb_build_object('ID', s.stmtid, 'Parent', s.parent_stmtid, 'Note', s.parent_note, 'Line', s.lineno, 'Name', s.stmtname,
					'Runs', s.exec_stmts) order by s.stmtid)
				from plpgsql_profiler_function_statements_tb(p.oid) s), '[]')
			from pg_proc p join pg_language l on l.oid = p.prolang
			where p.pronamespace = 'autopost'::regnamespace and l.lanname = 'plpgsql'
			order by p.proname, p.oid`)
		require.NoError(t, err)
		found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[profiled])
		require.NoError(t, err)
		for _, f := range found {
			if known := total[f.Signature]; len(known.Statements) > 0 && len(f.Statements) > 0 {
				require.Len(t, f.Statements, len(known.Statements), f.Signature)
				for n := range f.Statements {
					f.Statements[n].Runs += known.Statements[n].Runs
				}
			} else if len(known.Statements) > 0 {
				f = known
			}
			total[f.Signature] = f
		}
	}
	var all []covered
	for _, signature := range slices.Sorted(maps.Keys(total)) {
		f := total[signature]
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
