package arch

import (
	"go/scanner"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/source"
)

// retired lists words that the project no longer uses, with the words that replace them. The
// patterns match whole words of comments, strings, pages and names, in lower case.
var retired = []struct{ pattern, write string }{
	{`houses?`, "installation, project"},
	{`doors?`, "endpoint, handler"},
	{`bells?`, "wake-up, wake"},
	{`tells?|told|telling|teller`, "return, print, log, notify"},
	{`strangers?`, "new contributor"},
	{`heart`, "heartbeat"},
	{`party|parties`, "key"},
	{`contradicts?`, "reject"},
	{`whoever|whomever`, "the caller"},
	{`bears`, "has"},
	{`anew`, "again"},
	{`besides`, "also"},
	{`seats?`, "capacity"},
	{`at hand`, "available"},
	{`under way`, "running"},
	{`in hand`, "in flight"},
	{`by itself|by themselves`, "automatically"},
	{`becomes? of|became of`, "result"},
	{`is none`, "is missing, is empty"},
	{`is no (?:[a-km-z]|l[a-np-z]|lon[a-fh-z])\w*`, "a negated verb: is not, must be"},
	{`speaks?|speakers?`, "send"},
	{`blueprints?`, "configuration file"},
}

// mayUse lists files that quote a retired word, or use it in its technical sense, with the reason.
var mayUse = map[string]string{
	"test/arch/prose_test.go":           "the list of retired words",
	"scripts/prose":                     "counts the words",
	"docs/reference/openapi":            "generated from the API, which is checked itself",
	"LICENSE":                           "the text of the license",
	"docs/glossary.md":                  "says which words were replaced",
	"db/functions/post/mark_links.sql":  "the list of top-level domains",
	"internal/adapter/twitter/emoji.go": "names of emoji",
}

var retiredWord = func() *regexp.Regexp {
	patterns := make([]string, len(retired))
	for i, r := range retired {
		patterns[i] = r.pattern
	}
	return regexp.MustCompile(`(?:^|[^\w-])(` + strings.Join(patterns, "|") + `)(?:$|[^\w-])`)
}()

// plainNegation matches negations that read well, and contract names with a retired word.
var plainNegation = regexp.MustCompile(`\bthere (?:is|was) (?:no\b|none\b)|\bis no longer\b|\bthird part(?:y|ies)\b|` +
	"[`\"'](?:told|tell)[`\"']" + `|\btold at\b|\bt\.told\b|\btold text\b|(?:\.|\s)tells\b[ ,)]|\bwebhook sends told\b|\breport tell\b`)

func TestRetiredWordsAreNotUsed(t *testing.T) {
	t.Parallel()
	for at, lines := range prose(t) {
		if quotes(at) {
			continue
		}
		for i, line := range lines {
			line = plainNegation.ReplaceAllString(strings.ToLower(line), " ")
			if found := retiredWord.FindStringSubmatch(line); found != nil {
				t.Errorf("%s:%d uses %q: write %s", at, i+1, found[1], replacement(found[1]))
			}
		}
	}
}

func replacement(word string) string {
	for _, r := range retired {
		if regexp.MustCompile(`^(?:` + r.pattern + `)$`).MatchString(word) {
			return r.write
		}
	}
	return "another word"
}

func quotes(at string) bool {
	for prefix := range mayUse {
		if strings.HasPrefix(at, prefix) {
			return true
		}
	}
	return false
}

// opener matches the words that must not open a comment or a commit title.
var opener = regexp.MustCompile(`^(?:What|Who|Whose|Of|That)\b`)

func TestCommentsStartWithTheirSubject(t *testing.T) {
	t.Parallel()
	s := load(t)
	total, banned := 0, []string{}
	count := func(at, comment string) {
		if total++; opener.MatchString(strings.TrimSpace(comment)) {
			banned = append(banned, at+": "+strings.SplitN(strings.TrimSpace(comment), "\n", 2)[0])
		}
	}
	for at, f := range s.files {
		if f.syntax != nil {
			for _, group := range f.syntax.Comments {
				count(s.fset.Position(group.Pos()).String(), group.Text())
			}
			continue
		}
		before := false
		for _, line := range strings.Split(text(t, at), "\n") {
			comment, isComment := strings.CutPrefix(strings.TrimSpace(line), "--")
			if isComment && !before {
				count(at, comment)
			}
			before = isComment
		}
	}
	if len(banned)*200 > total {
		t.Errorf("%d of %d comments open with What, Who, Whose, Of or That, more than 0.5 %%:\n%s", len(banned), total, strings.Join(banned, "\n"))
	}
}

func TestSQLLinesAreNarrow(t *testing.T) {
	t.Parallel()
	s := load(t)
	lines, wide := 0, []string{}
	for _, at := range sorted(s.files) {
		if path.Ext(at) != ".sql" || at == "db/schema.sql" {
			continue
		}
		for i, line := range strings.Split(text(t, at), "\n") {
			if lines++; utf8.RuneCountInString(line)+3*strings.Count(line, "\t") > 120 {
				wide = append(wide, at+":"+strconv.Itoa(i+1))
			}
		}
	}
	if len(wide)*100 > lines {
		t.Errorf("%d of %d lines of SQL have more than 120 columns, more than 1 %%: %s", len(wide), lines, strings.Join(wide[:min(len(wide), 40)], " "))
	}
}

func TestPagesKeepTheirLength(t *testing.T) {
	t.Parallel()
	for at, most := range map[string]int{"README.md": 90, "ARCHITECTURE.md": 150} {
		if lines := strings.Count(text(t, at), "\n"); lines > most {
			t.Errorf("%s has %d lines, more than %d", at, lines, most)
		}
	}
}

// prose returns the lines of comments, strings, names and pages, by file. Other lines are empty.
func prose(t *testing.T) map[string][]string {
	t.Helper()
	s := load(t)
	out := map[string][]string{}
	for at, f := range s.files {
		content := text(t, at)
		if f.syntax == nil {
			if at != "db/schema.sql" {
				out[at] = splitWords(strings.Split(content, "\n"))
			}
			continue
		}
		out[at] = goProse(content)
	}
	root, err := source.Root()
	require.NoError(t, err)
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "Makefile", "scripts/*.sh", ".golangci.yml"} {
		pages, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		for _, page := range pages {
			at, err := filepath.Rel(root, page)
			require.NoError(t, err)
			out[filepath.ToSlash(at)] = strings.Split(text(t, at), "\n")
		}
	}
	return out
}

// goProse keeps comments, strings and identifiers, each on the line where it stands in text.
func goProse(text string) []string {
	files := token.NewFileSet()
	file := files.AddFile("", files.Base(), len(text))
	out := make([]string, strings.Count(text, "\n")+2)
	var sc scanner.Scanner
	sc.Init(file, []byte(text), nil, scanner.ScanComments)
	for {
		pos, kind, literal := sc.Scan()
		if kind == token.EOF {
			return out
		}
		if kind != token.COMMENT && kind != token.STRING && kind != token.IDENT {
			continue
		}
		for i, line := range strings.Split(literal, "\n") {
			if kind == token.IDENT {
				line = separate(line)
			}
			out[file.Line(pos)-1+i] += " | " + line
		}
	}
}

var camel = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// separate separates the words of a name with spaces: "openDoor" becomes "open Door".
func separate(name string) string {
	return strings.ReplaceAll(camel.ReplaceAllString(name, "$1 $2"), "_", " ")
}

func splitWords(lines []string) []string {
	for i, line := range lines {
		lines[i] = strings.ReplaceAll(line, "_", " ")
	}
	return lines
}

// text returns the content of a file of the repository.
func text(t *testing.T, at string) string {
	t.Helper()
	root, err := source.Root()
	require.NoError(t, err)
	content, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(at)))
	require.NoError(t, err)
	return string(content)
}
