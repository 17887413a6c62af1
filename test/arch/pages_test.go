package arch

import (
	"encoding/json"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/config"
	"autopost/internal/testing/source"
)

// pages returns the pages for people by their path: those of the root and of docs.
func pages(t *testing.T) map[string]string {
	t.Helper()
	root, err := source.Root()
	require.NoError(t, err)
	all := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		for _, page := range found {
			at, err := filepath.Rel(root, page)
			require.NoError(t, err)
			all[filepath.ToSlash(at)] = text(t, at)
		}
	}
	return all
}

// signature is a function of the database: its least and most arguments, and the names of its parameters.
type signature struct {
	least, most int
	names       []string
}

var (
	defined   = regexp.MustCompile(`(?m)^CREATE (?:TABLE|VIEW|TYPE|DOMAIN|SEQUENCE) autopost\.(\w+)`)
	declared  = regexp.MustCompile(`(?m)^CREATE FUNCTION autopost\.(\w+)\((.*)\) RETURNS`)
	nameInSQL = regexp.MustCompile(`\bautopost\.([a-z]\w*)(\()?`)
	// notSQL are endings of files and hosts, and the variable of a session.
	notSQL = []string{"yaml", "json", "csv", "md", "cdx", "dump", "example", "workspace_id"}
)

// Names of the schema in a page exist, and a call has a possible number of arguments.
func TestPagesNameExistingSQL(t *testing.T) {
	t.Parallel()
	schema := text(t, "db/schema.sql")
	known, functions := map[string]bool{}, map[string]signature{}
	for _, m := range defined.FindAllStringSubmatch(schema, -1) {
		known[m[1]] = true
	}
	for _, m := range declared.FindAllStringSubmatch(schema, -1) {
		s := signature{}
		for _, argument := range splitArguments(m[2]) {
			s.names = append(s.names, strings.Fields(argument)[0])
			if s.most++; !strings.Contains(argument, " DEFAULT ") {
				s.least++
			}
		}
		known[m[1]], functions[m[1]] = true, s
	}
	require.Greater(t, len(functions), 300)
	calls := 0
	for at, page := range pages(t) {
		if strings.HasPrefix(at, "docs/reference/") {
			continue // generated from the functions
		}
		for _, m := range nameInSQL.FindAllStringSubmatchIndex(page, -1) {
			name := page[m[2]:m[3]]
			if !known[name] && !slices.Contains(notSQL, name) {
				t.Errorf("%s: autopost.%s does not exist", at, name)
			}
			arguments, closed := upToParenthesis(page[m[1]:])
			if m[4] < 0 || !closed || strings.ContainsAny(arguments, "…<") {
				continue
			}
			calls++
			s := functions[name]
			given := splitArguments(arguments)
			if len(given) < s.least || len(given) > s.most {
				t.Errorf("%s: autopost.%s takes %s, got (%s)", at, name, strings.Join(s.names, ", "), arguments)
			}
			for _, argument := range given {
				if parameter, _, named := strings.Cut(argument, " => "); named && !slices.Contains(s.names, strings.TrimSpace(parameter)) {
					t.Errorf("%s: autopost.%s has no parameter %s", at, name, parameter)
				}
			}
		}
	}
	require.Greater(t, calls, 8)
}

// splitArguments splits a list at the commas outside of parentheses and quotes.
func splitArguments(list string) []string {
	var all []string
	depth, quoted, start := 0, false, 0
	for i, r := range list {
		switch {
		case r == '\'':
			quoted = !quoted
		case quoted:
		case strings.ContainsRune("([{", r):
			depth++
		case strings.ContainsRune(")]}", r):
			depth--
		case r == ',' && depth == 0:
			all, start = append(all, strings.TrimSpace(list[start:i])), i+1
		}
	}
	if last := strings.TrimSpace(list[start:]); last != "" {
		all = append(all, last)
	}
	return all
}

// upToParenthesis returns the text before the parenthesis that closes a call; ok is false if there is none.
func upToParenthesis(text string) (arguments string, ok bool) {
	depth, quoted := 0, false
	for i, r := range text {
		switch {
		case r == '\'':
			quoted = !quoted
		case quoted:
		case r == '(':
			depth++
		case r == ')' && depth == 0:
			return text[:i], true
		case r == ')':
			depth--
		}
	}
	return "", false
}

// otherVariables are the name of the configuration's file, and variables that only tests and make read.
var otherVariables = []string{"AUTOPOST_CONFIG", "AUTOPOST_SEED", "AUTOPOST_LONG", "AUTOPOST_TEST_BIN"}

// Variables, routes of the API and linked files in a page exist.
func TestPagesNameExistingThings(t *testing.T) {
	t.Parallel()
	root, err := source.Root()
	require.NoError(t, err)
	variables := slices.Clone(otherVariables)
	for _, v := range config.Variables() {
		variables = append(variables, v.Name)
	}
	var document struct{ Paths map[string]any }
	require.NoError(t, json.Unmarshal([]byte(text(t, "docs/reference/openapi.json")), &document))
	routes := slices.Collect(maps.Keys(document.Paths))
	for at, page := range pages(t) {
		for _, name := range regexp.MustCompile(`\bAUTOPOST_[A-Z_]+[A-Z]\b`).FindAllString(page, -1) {
			if !slices.Contains(variables, name) {
				t.Errorf("%s: %s is not a variable", at, name)
			}
		}
		for _, route := range regexp.MustCompile("/api/v1/[a-z/{}_-]*[a-z}]").FindAllString(page, -1) {
			if !slices.ContainsFunc(routes, func(known string) bool { return known == route || strings.HasPrefix(known, route+"/") }) {
				t.Errorf("%s: %s is not a route", at, route)
			}
		}
		for _, link := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(page, -1) {
			if strings.Contains(link[1], "://") || strings.HasPrefix(link[1], "mailto:") {
				continue
			}
			to, anchor, _ := strings.Cut(link[1], "#")
			target := at
			if to != "" {
				target = path.Join(path.Dir(at), to)
			}
			if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(target))); err != nil {
				t.Errorf("%s: %s does not exist", at, link[1])
			} else if anchor != "" && !hasHeading(text(t, target), anchor) {
				t.Errorf("%s: %s has no heading %s", at, target, anchor)
			}
		}
	}
}

// Examples of JSON in a page are valid.
func TestPagesHaveValidJSON(t *testing.T) {
	t.Parallel()
	blocks := 0
	for at, page := range pages(t) {
		for _, block := range regexp.MustCompile("(?ms)^```json[^\n]*\n(.*?)^```$").FindAllStringSubmatch(page, -1) {
			decoder := json.NewDecoder(strings.NewReader(block[1]))
			for decoder.More() {
				if err := decoder.Decode(new(any)); err != nil {
					t.Errorf("%s: %v in %s", at, err, block[1])
					break
				}
			}
			blocks++
		}
	}
	require.Greater(t, blocks, 5)
}

// hasHeading reports whether a page has a heading with this anchor.
func hasHeading(page, anchor string) bool {
	for line := range strings.Lines(page) {
		title, heading := strings.CutPrefix(strings.TrimLeft(line, "#"), " ")
		words := regexp.MustCompile(`[^\w\s-]`).ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), "")
		if heading && strings.ReplaceAll(words, " ", "-") == anchor {
			return true
		}
	}
	return false
}
