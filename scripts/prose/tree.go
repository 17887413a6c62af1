package main

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

var (
	word        = regexp.MustCompile(`\p{L}+`)
	tell        = regexp.MustCompile(`(?i)\b(?:tell|tells|told|telling)\b`)
	opener      = regexp.MustCompile(`^(?i:what|who|whose|of|that)\b`)
	sqlFunction = regexp.MustCompile(`(?im)^create or replace function\s+([a-z_.]+)`)
	plan        = regexp.MustCompile(`(?i)\bplan\((\d+)\)`)
	setting     = regexp.MustCompile("(?m)^\\| `")
)

// tree holds the counts of a source tree.
type tree struct {
	goComments, sqlHead                 opened
	told                                map[string]*rate
	functions                           []function
	largeFiles, largeTests              []string
	goCode, goTestCode                  int
	sqlCode, sqlTest, sqlLines, sqlWide int
	sqlFunctions, packages              map[string]bool
	tests, settings                     int
	pgtapFiles, pgtapAssertions         int
	plantedSQL, plantedGo               int
}

// opened counts comments, and those that open with a word that the style guide bans there.
type opened struct{ all, banned int }

func (o *opened) add(text string) {
	o.all++
	if opener.MatchString(text) {
		o.banned++
	}
}

func (o *opened) measure(name string) measure {
	return measure{name, percent(o.banned, o.all), "percent", fmt.Sprintf("%d of %d", o.banned, o.all)}
}

// rate counts words, and those that are forms of "tell".
type rate struct{ words, tell int }

func (r *rate) add(text string) {
	r.words += len(word.FindAllString(text, -1))
	r.tell += len(tell.FindAllString(text, -1))
}

// function is a Go function outside of tests; lines are those of its body.
type function struct {
	name  string
	lines int
}

func readTree(root string) (*tree, error) {
	t := &tree{
		told:         map[string]*rate{"comments": {}, "strings": {}, "markdown": {}},
		sqlFunctions: map[string]bool{}, packages: map[string]bool{},
	}
	files := os.DirFS(root)
	return t, fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if base := entry.Name(); entry.IsDir() && name != "." && (base[0] == '.' || base == "testdata" || base == "bin") {
			return fs.SkipDir
		}
		ext := path.Ext(name)
		if !entry.Type().IsRegular() || ext != ".go" && ext != ".sql" && ext != ".md" {
			return nil
		}
		raw, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		switch text := string(raw); ext {
		case ".go":
			return t.addGo(name, text)
		case ".sql":
			t.addSQL(name, text)
		default:
			t.told["markdown"].add(text)
			if path.Base(name) == "settings.md" {
				t.settings += len(setting.FindAllString(text, -1))
			}
		}
		return nil
	})
}

// addSQL counts the files of db/; its generated schema.sql is left out.
func (t *tree) addSQL(name, text string) {
	if !strings.HasPrefix(name, "db/") || name == "db/schema.sql" {
		return
	}
	total := &t.sqlCode
	if strings.HasPrefix(name, "db/tests/") {
		total = &t.sqlTest
		if found := plan.FindStringSubmatch(text); found != nil {
			n, _ := strconv.Atoi(found[1])
			t.pgtapFiles++
			t.pgtapAssertions += n
		}
	}
	if strings.HasPrefix(name, "db/functions/") {
		for _, found := range sqlFunction.FindAllStringSubmatch(text, -1) {
			t.sqlFunctions[found[1]] = true
		}
	}
	inComment := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		t.sqlLines++
		if utf8.RuneCountInString(line)+3*strings.Count(line, "\t") > 120 {
			t.sqlWide++
		}
		line = strings.TrimSpace(line)
		comment, isComment := strings.CutPrefix(line, "--")
		if isComment {
			t.told["comments"].add(comment)
			if !inComment {
				t.sqlHead.add(strings.TrimSpace(comment))
			}
		} else if line != "" {
			*total++
		}
		inComment = isComment
	}
}

func (t *tree) measures() []measure {
	out := []measure{
		t.goComments.measure("Go comments that open with What, Who, Whose, Of or That"),
		t.sqlHead.measure("SQL comments that open with What, Who, Whose, Of or That"),
	}
	for _, kind := range []string{"comments", "strings", "markdown"} {
		r := t.told[kind]
		out = append(out, measure{"tell, tells, told, telling in " + kind, 10 * percent(r.tell, r.words), "per 1000 words", fmt.Sprintf("%d of %d", r.tell, r.words)})
	}
	slices.SortFunc(t.functions, func(a, b function) int { return a.lines - b.lines })
	n := len(t.functions)
	for i, name := range []string{"median", "90th percentile", "longest"} {
		if n > 0 {
			f := t.functions[[]int{n / 2, n * 9 / 10, n - 1}[i]]
			out = append(out, measure{"Go function length, " + name, float64(f.lines), "lines", fmt.Sprintf("%s, of %d", f.name, n)})
		}
	}
	count := func(name string, n int, note string) { out = append(out, measure{name, float64(n), "count", note}) }
	count("Go files over 500 lines", len(t.largeFiles), strings.Join(t.largeFiles, " "))
	count("Go test files over 800 lines", len(t.largeTests), strings.Join(t.largeTests, " "))
	out = append(out, measure{"SQL lines over 120 columns", percent(t.sqlWide, t.sqlLines), "percent", fmt.Sprintf("%d of %d; a tab is 4 columns", t.sqlWide, t.sqlLines)})
	count("Go code lines", t.goCode, "without blank lines and comments")
	count("Go test code lines", t.goTestCode, "")
	count("SQL code lines", t.sqlCode, "")
	count("SQL test code lines", t.sqlTest, "")
	count("settings", t.settings, "rows of settings.md")
	count("SQL functions", len(t.sqlFunctions), "")
	count("Go packages", len(t.packages), "folders with Go files")
	count("Go tests", t.tests, "func Test and t.Run")
	count("pgTAP assertions", t.pgtapAssertions, fmt.Sprintf("sum of plan(n) in %d files", t.pgtapFiles))
	count("planted SQL bugs", t.plantedSQL, "")
	count("planted Go bugs", t.plantedGo, "")
	return out
}

func percent(part, whole int) float64 { return 100 * float64(part) / float64(max(whole, 1)) }
