package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/db"
)

func TestReferenceIsWhatIsGenerated(t *testing.T) {
	t.Parallel()
	pages, err := pages()
	require.NoError(t, err)
	for name, text := range pages {
		kept, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", name))
		require.NoError(t, err)
		require.True(t, string(kept) == text, "docs/reference/%s is not what is made now: make generate", name)
	}
}

func TestEveryActionOfAnEventHasItsMeaning(t *testing.T) {
	t.Parallel()
	schema, err := os.ReadFile("../../db/schema.sql")
	require.NoError(t, err)
	check := regexp.MustCompile(`events_action_check CHECK \(.*`).FindString(string(schema))
	var allowed, explained []string
	for _, m := range regexp.MustCompile(`'(\w+)'`).FindAllStringSubmatch(check, -1) {
		allowed = append(allowed, m[1])
	}
	for _, a := range actions {
		explained = append(explained, a[0])
		require.NotEmpty(t, a[1], a[0])
	}
	require.ElementsMatch(t, allowed, explained)
}

// What begins with AP9 is caught where it is raised.
func TestEveryErrorCodeAndFunctionIsOnThePage(t *testing.T) {
	t.Parallel()
	page, err := sqlPage()
	require.NoError(t, err)
	raised := regexp.MustCompile(`errcode = '(AP[0-8]\d\d)'`)
	defined := regexp.MustCompile(`(?m)^create or replace function autopost\.(\w+)[^$]*?security definer[^$]*?as \$\$`)
	functions := 0
	require.NoError(t, fs.WalkDir(db.Functions, "functions", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(db.Functions, path)
		for _, m := range raised.FindAllStringSubmatch(string(text), -1) {
			require.True(t, slices.ContainsFunc(errorCodes, func(e [2]string) bool { return e[0] == m[1] }), m[1])
		}
		if !strings.Contains(path, "/lib/") {
			for _, m := range defined.FindAllStringSubmatch(string(text), -1) {
				functions++
				require.True(t, strings.Contains(page, "\n### "+m[1]), "%s of %s", m[1], path)
			}
		}
		return err
	}))
	require.Greater(t, functions, 150)
}
