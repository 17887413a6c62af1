package arch

import (
	"go/ast"
	"go/types"
	"path"
	"slices"
	"strings"
	"testing"
)

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	t.Parallel()
	s := load(t)
	for _, name := range sorted(s.packages) {
		if p := s.packages[name]; p.hasCode && !p.documented {
			t.Errorf("%s has no package comment", folder(name))
		}
	}
}

// Budgets in lines. A longer file has more than one concept.
const (
	fileBudget     = 500
	testFileBudget = 800
)

// overBudget lists the files that may be longer, and why.
var overBudget = map[string]string{
	"db/schema.sql":            "generated: the whole schema in one file",
	"db/functions/install.sql": "the one order of all files, a line each",
}

func TestFilesKeepTheirBudget(t *testing.T) {
	t.Parallel()
	s := load(t)
	for _, at := range sorted(s.files) {
		budget := fileBudget
		if isTest(at) || within(at, "db/tests") || within(at, "test") {
			budget = testFileBudget
		}
		if strings.HasSuffix(at, "_templ.go") { // generated; its source is the file of templ
			continue
		}
		if _, may := overBudget[at]; !may && s.files[at].lines > budget {
			t.Errorf("%s has %d lines, more than %d: split it by concept", at, s.files[at].lines, budget)
		}
	}
}

// One key for one thing in every line of the log: an id says that it is one.
func TestIDsInTheLogAreCalledSo(t *testing.T) {
	t.Parallel()
	s := load(t)
	for at, f := range s.files {
		if f.syntax == nil || isTest(at) {
			continue
		}
		ast.Inspect(f.syntax, func(node ast.Node) bool {
			var fields []ast.Expr
			switch n := node.(type) {
			case *ast.CallExpr:
				called, ok := n.Fun.(*ast.SelectorExpr)
				if !ok || !strings.HasPrefix(called.Sel.Name, "Debug") && !strings.HasPrefix(called.Sel.Name, "Info") && !strings.HasPrefix(called.Sel.Name, "Warn") && !strings.HasPrefix(called.Sel.Name, "Error") {
					return true
				}
				fields = n.Args
			case *ast.CompositeLit: // fields that several lines share
				if list, ok := n.Type.(*ast.ArrayType); !ok || list.Elt == nil || types.ExprString(list.Elt) != "any" {
					return true
				}
				fields = n.Elts
			}
			for _, field := range fields {
				literal, ok := field.(*ast.BasicLit)
				if ok && slices.Contains([]string{`"workspace"`, `"run"`, `"source"`, `"submission"`, `"job"`, `"delivery"`, `"channel"`, `"endpoint"`}, literal.Value) {
					t.Errorf("%s: %s is called %s_id in the log", s.fset.Position(literal.Pos()), literal.Value, strings.Trim(literal.Value, `"`))
				}
			}
			return true
		})
	}
}

// A sleeping test is slow when it is right and wrong when the machine is slow.
func TestTestsDoNotSleep(t *testing.T) {
	t.Parallel()
	s := load(t)
	s.inTests(func(at string, _ *ast.FuncDecl, call *ast.CallExpr) {
		if isCall(call, "time", "Sleep") {
			t.Errorf("%s sleeps: use testing/synctest, a signal, or a deadline", s.fset.Position(call.Pos()))
		}
	})
}

// A skipped test proves nothing and looks as if it did. Only the reference data
// beside the repository may be missing: a function that skips must be the one that
// looks for it, which shows by the name of that folder.
func TestTestsDoNotSkip(t *testing.T) {
	t.Parallel()
	s := load(t)
	s.inTests(func(at string, in *ast.FuncDecl, call *ast.CallExpr) {
		for _, name := range []string{"Skip", "Skipf", "SkipNow"} {
			if isCall(call, "t", name) && !namesSharedData(in) {
				t.Errorf("%s skips: make the test run, or delete it", s.fset.Position(call.Pos()))
			}
		}
	})
}

// A refusal is a problem of the catalogue: handlers of requests write nothing else.
func TestHandlersRefuseByProblems(t *testing.T) {
	t.Parallel()
	s := load(t)
	for at, f := range s.files {
		if f.syntax == nil || isTest(at) || !within(at, "internal/api") && !within(at, "internal/ingest") && !within(at, "internal/authlimit") {
			continue
		}
		ast.Inspect(f.syntax, func(node ast.Node) bool {
			if call, ok := node.(*ast.CallExpr); ok && (isCall(call, "http", "Error") || isCall(call, "http", "NotFound")) {
				t.Errorf("%s answers in plain text: write a problem of internal/problem", s.fset.Position(call.Pos()))
			}
			return true
		})
	}
}

// inTests visits every call in tests and in the packages made for them.
func (s *tree) inTests(visit func(at string, in *ast.FuncDecl, call *ast.CallExpr)) {
	for _, at := range sorted(s.files) {
		syntax := s.files[at].syntax
		if syntax == nil || !isTest(at) && !testOnly(path.Dir(at)) && !within(at, "test") {
			continue
		}
		for _, decl := range syntax.Decls {
			function, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(function, func(node ast.Node) bool {
				if call, ok := node.(*ast.CallExpr); ok {
					visit(at, function, call)
				}
				return true
			})
		}
	}
}

func isCall(call *ast.CallExpr, on, name string) bool {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || selector.Sel.Name != name {
		return false
	}
	receiver, ok := selector.X.(*ast.Ident)
	return ok && receiver.Name == on
}

func namesSharedData(function *ast.FuncDecl) bool {
	found := false
	ast.Inspect(function, func(node ast.Node) bool {
		if literal, ok := node.(*ast.BasicLit); ok && strings.Contains(literal.Value, "shared") {
			found = true
		}
		return true
	})
	return found
}

// supervised are the packages that run inside the stages of a daemon.
var supervised = []string{
	"internal/adapter/", "internal/api/", "internal/authlimit/", "internal/bot/", "internal/credential/", "internal/daemon/", "internal/dispatch/",
	"internal/ingest/", "internal/media/", "internal/monitor/", "internal/notify/", "internal/outbound/", "internal/pg/",
	"internal/telemetry/", "internal/webhooks/", "internal/worker/",
}

// contains reports whether a stage contains panics of the goroutine that runs e: worker.Task or worker.Contained.
func contains(e ast.Expr) bool {
	if call, ok := e.(*ast.CallExpr); ok {
		name := types.ExprString(call.Fun)
		name = name[strings.LastIndex(name, ".")+1:]
		return name == "Task" || name == "Contained"
	}
	return false
}

// A panic in a goroutine ends the whole daemon, unless the goroutine contains it.
func TestGoroutinesOfStagesContainPanics(t *testing.T) {
	t.Parallel()
	s := load(t)
	for _, at := range sorted(s.files) {
		inside := slices.ContainsFunc(supervised, func(folder string) bool { return strings.HasPrefix(at, folder) })
		if s.files[at].syntax == nil || !inside || isTest(at) || within(at, "internal/adapter/adaptertest") {
			continue
		}
		ast.Inspect(s.files[at].syntax, func(n ast.Node) bool {
			var started ast.Expr
			switch n := n.(type) {
			case *ast.GoStmt:
				started = n.Call.Fun
			case *ast.CallExpr:
				if called, ok := n.Fun.(*ast.SelectorExpr); ok && called.Sel.Name == "Go" && len(n.Args) == 1 {
					started = n.Args[0]
				}
			}
			// The Supervisor itself contains its runners.
			if started != nil && !contains(started) && at != "internal/worker/supervisor.go" {
				t.Errorf("%s starts a goroutine whose panic ends the daemon: wrap it in worker.Task or worker.Contained", s.fset.Position(n.Pos()))
			}
			return true
		})
	}
}
