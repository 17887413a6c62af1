package pg

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/db"
)

var (
	bareCall    = regexp.MustCompile(`^select autopost\.\w+\((.*)\)( as \w+)?$`)
	bareRead    = regexp.MustCompile(`^select (.+) from autopost\.\w+\((.*)\)( (as )?\w+)?( order by [^()]+)?( limit \S+)?$`)
	change      = regexp.MustCompile(`^autopost\.\w+\((.*)\)$`)
	ourFunction = regexp.MustCompile(`\bautopost\.\w+\(`)
	// statementStart is the beginning of a statement, or of the call of a function that "select * from" precedes.
	statementStart = regexp.MustCompile(`^(?:autopost\.|select |with )`)
	volatileCall   = regexp.MustCompile(`\b(now|random|gen_random_uuid|clock_timestamp|statement_timestamp|nextval)\(`)
	wholeRow       = regexp.MustCompile(`\b(to_jsonb|row_to_json)\(\w\)`)
	textToInstant  = regexp.MustCompile(`(?:::text(?:\[\])?|\))::(?:timestamp|date)`)
	reason         = regexp.MustCompile(`// citus: ok, \w`)
)

// notBare says why a cluster does not run a statement on the node of its workspace; "" if it does. It does so for one
// bare call alone: db/distribute.sql registers the functions.
func notBare(sql string) string {
	sql = strings.Join(strings.Fields(sql), " ")
	switch calls := len(ourFunction.FindAllString(sql, -1)); {
	case calls != 1:
		return fmt.Sprintf("has %d functions of ours: call one", calls)
	case strings.Contains(sql, "(select "):
		return "has a subselect: pass a value"
	case strings.Contains(sql, " where "):
		return "has WHERE: filter in the function or in Go"
	case volatileCall.MatchString(sql[strings.Index(sql, "autopost."):]):
		return "has a volatile function: pass a value"
	case textToInstant.MatchString(sql):
		return "casts text to an instant: write $1::timestamptz, as a cluster sends a cast in two steps that PostgreSQL refuses"
	case wholeRow.MatchString(sql):
		return "uses the row as a whole: list the columns"
	case change.MatchString(sql), bareCall.MatchString(sql), bareRead.MatchString(sql):
		return ""
	}
	return "is not one bare call: write select f(…), or select columns from f(…)"
}

// TestStatementsAreBareCalls checks the statements of this package. An exception has the comment "citus: ok, REASON" in
// its line.
func TestStatementsAreBareCalls(t *testing.T) {
	t.Parallel()
	checked := 0
	for _, s := range statementsOf(t) {
		if why := notBare(s.sql); why != "" && !reason.MatchString(s.line) {
			t.Errorf("%s: %s\n%s", s.at, why, s.sql)
		}
		checked++
	}
	require.Greater(t, checked, 150)
	for name, sql := range lists {
		require.Empty(t, notBare(sql), name)
	}
}

// TestNotBareFindsEachForm checks the rules of notBare.
func TestNotBareFindsEachForm(t *testing.T) {
	t.Parallel()
	for _, sql := range []string{
		`select autopost.f($1)`, `select * from autopost.f($1, nullif($2, ''))`, `select a, nullif(b, 'infinity') from autopost.f($1) order by a limit 3`,
		`select count(*) from autopost.f($1) r`, `autopost.f(@workspace, @id::text::uuid)`,
	} {
		require.Empty(t, notBare(sql), sql)
	}
	for sql, want := range map[string]string{
		`select autopost.f(autopost.g($1))`:                               "2 functions",
		`select autopost.f($1), 1`:                                        "not one bare call",
		`select jsonb_build_object('a', autopost.f($1))`:                  "not one bare call",
		`select * from autopost.f($1) where a = 1`:                        "WHERE",
		`select * from autopost.f($1, (select 1))`:                        "subselect",
		`select autopost.f($1, gen_random_uuid())`:                        "volatile",
		`select to_jsonb(r) from autopost.f($1) r`:                        "row as a whole",
		`select * from autopost.f($1, nullif($2, '')::timestamptz)`:       "instant",
		`select * from autopost.f($1, $2::text[]::timestamp[])`:           "instant",
		`with x as (select * from autopost.f($1)) select count(*) from x`: "subselect",
		`select exists (select from autopost.f($1))`:                      "subselect",
	} {
		require.Contains(t, notBare(sql), want, sql)
	}
}

// TestWriteOnceKnowsEachChange compares the changes of this package with those of write_once.
func TestWriteOnceKnowsEachChange(t *testing.T) {
	t.Parallel()
	text, err := fs.ReadFile(db.Functions, "functions/admin/write_once.sql")
	require.NoError(t, err)
	var known, made []string
	for _, m := range regexp.MustCompile(`(?m)^\t\twhen '(\w+)' then`).FindAllStringSubmatch(string(text), -1) {
		known = append(known, m[1])
	}
	for _, s := range statementsOf(t) {
		if change.MatchString(strings.Join(strings.Fields(s.sql), " ")) {
			made = append(made, functionOf(s.sql))
		}
	}
	slices.Sort(made)
	slices.Sort(known)
	made = slices.DeleteFunc(slices.Compact(made), func(name string) bool { return name == "manual_requeue_preview" }) // a dry run
	require.Equal(t, made, known)
}

// sourceStatement is a statement in the source. What is not constant in it is "x".
type sourceStatement struct{ sql, at, line string }

func statementsOf(t *testing.T) []sourceStatement {
	t.Helper()
	files := token.NewFileSet()
	names, err := filepath.Glob("*.go")
	require.NoError(t, err)
	var parsed []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(files, name, nil, parser.ParseComments)
		require.NoError(t, err)
		parsed = append(parsed, file)
	}
	constants := map[string]string{}
	var text func(e ast.Expr) string
	text = func(e ast.Expr) string {
		switch e := e.(type) {
		case *ast.BasicLit:
			if value, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
				return value
			}
		case *ast.BinaryExpr:
			return text(e.X) + text(e.Y)
		case *ast.ParenExpr:
			return text(e.X)
		case *ast.Ident:
			if value, ok := constants[e.Name]; ok {
				return value
			}
		case *ast.CallExpr:
			if name, ok := e.Fun.(*ast.Ident); ok && name.Name == "object" {
				return "select x"
			}
		}
		return "x"
	}
	for _, file := range parsed {
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == len(spec.Names) {
				for i, name := range spec.Names {
					constants[name.Name] = text(spec.Values[i])
				}
			}
			return true
		})
	}
	var found []sourceStatement
	for _, file := range parsed {
		ast.Inspect(file, func(n ast.Node) bool {
			e, ok := n.(ast.Expr)
			if !ok {
				return true
			}
			switch n.(type) {
			case *ast.BasicLit, *ast.BinaryExpr:
			default:
				return true
			}
			sql := strings.TrimSpace(text(e))
			if !statementStart.MatchString(sql) || !ourFunction.MatchString(sql) {
				return true
			}
			at := files.Position(n.Pos())
			source, err := os.ReadFile(at.Filename)
			require.NoError(t, err)
			found = append(found, sourceStatement{sql, at.String(), strings.Split(string(source), "\n")[at.Line-1]})
			return false
		})
	}
	return found
}
