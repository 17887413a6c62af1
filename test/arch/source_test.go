package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"autopost/internal/testing/source"

	"github.com/stretchr/testify/require"
)

const module = "autopost"

// tree is the repository as its files say, whatever their build tags.
type tree struct {
	fset *token.FileSet
	// files are all Go and SQL files by their path from the root.
	files    map[string]file
	packages map[string]*pkg
}

type file struct {
	lines int
	// syntax is nil for SQL.
	syntax *ast.File
}

// pkg is one package; paths are import paths.
type pkg struct {
	documented  bool
	hasCode     bool
	imports     map[string][]string // what the package imports -> by which files
	testImports map[string][]string
}

// read parses the repository once. The files are opened by the test itself, and
// not by a go command of its own, so that a cached result never hides a change.
var read = sync.OnceValues(func() (*tree, error) {
	root, err := source.Root()
	if err != nil {
		return nil, err
	}
	s := &tree{fset: token.NewFileSet(), files: map[string]file{}, packages: map[string]*pkg{}}
	return s, filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		at, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			_, notOurs := os.Stat(filepath.Join(name, "go.mod"))
			if at != "." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata" ||
				entry.Name() == "autopost-data" || notOurs == nil) {
				return fs.SkipDir
			}
			return nil
		}
		return s.add(name, filepath.ToSlash(at))
	})
})

func (s *tree) add(name, at string) error {
	ext := path.Ext(at)
	if ext != ".go" && ext != ".sql" {
		return nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	f := file{lines: strings.Count(string(text), "\n")}
	if ext == ".go" {
		if f.syntax, err = parser.ParseFile(s.fset, at, text, parser.ParseComments|parser.SkipObjectResolution); err != nil {
			return err
		}
		s.addSyntax(at, f.syntax)
	}
	s.files[at] = f
	return nil
}

func (s *tree) addSyntax(at string, syntax *ast.File) {
	name := path.Join(module, path.Dir(at))
	p := s.packages[name]
	if p == nil {
		p = &pkg{imports: map[string][]string{}, testImports: map[string][]string{}}
		s.packages[name] = p
	}
	imports := p.testImports
	if !isTest(at) {
		imports = p.imports
		p.hasCode = true
		p.documented = p.documented || syntax.Doc != nil
	}
	for _, spec := range syntax.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value)
		imports[imported] = append(imports[imported], at)
	}
}

// reaches lists our own packages that p links in, by any way.
func (s *tree) reaches(name string, seen map[string]bool) map[string]bool {
	if p := s.packages[name]; p != nil && !seen[name] {
		seen[name] = true
		for imported := range p.imports {
			s.reaches(imported, seen)
		}
	}
	return seen
}

func isTest(at string) bool { return strings.HasSuffix(at, "_test.go") }

func load(t *testing.T) *tree {
	t.Helper()
	s, err := read()
	require.NoError(t, err)
	return s
}

// sorted returns the keys in order, for answers that do not change from run to run.
func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
