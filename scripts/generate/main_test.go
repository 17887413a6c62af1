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

func TestReferenceIsCurrent(t *testing.T) {
	t.Parallel()
	pages, err := pages()
	require.NoError(t, err)
	for name, text := range pages {
		kept, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", name))
		require.NoError(t, err)
		require.True(t, string(kept) == text, "docs/reference/%s is out of date: run make generate", name)
	}
}

func TestArchitectureHasTheCurrentInvariants(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	kept, err := os.ReadFile("ARCHITECTURE.md")
	require.NoError(t, err)
	page, err := architecture()
	require.NoError(t, err)
	require.True(t, string(kept) == page, "ARCHITECTURE.md is out of date: run make generate")
}

func TestPostsPageHasTheCurrentFields(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	kept, err := os.ReadFile(postsFile)
	require.NoError(t, err)
	page, err := postsPage()
	require.NoError(t, err)
	require.True(t, string(kept) == page, "%s is out of date: run make generate", postsFile)
	for _, part := range []string{"Post", "Medium", "Button", "Routing", "RouteFilter", "PostTemplate", "Variant", "Captions"} {
		require.Contains(t, page, "<!-- fields of "+part+":")
	}
}

func TestEveryActionOfAnEventHasItsMeaning(t *testing.T) {
	t.Parallel()
	schema, err := os.ReadFile("../../db/schema.sql")
	require.NoError(t, err)
	check := regexp.MustCompile(`event_action_check CHECK \(.*`).FindString(string(schema))
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

// Codes that start with AP9 never leave the function that raises them.
func TestEveryErrorCodeAndFunctionIsOnThePage(t *testing.T) {
	t.Parallel()
	callers, engine, err := sqlPages()
	require.NoError(t, err)
	page := callers + engine
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
		for _, m := range defined.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[0], "returns trigger") {
				continue
			}
			functions++
			require.True(t, strings.Contains(page, "\n### "+m[1]), "%s of %s", m[1], path)
		}
		return err
	}))
	require.Greater(t, functions, 150)
}

// Every function that takes an operator is on the page, and its row has the events of its header.
func TestManualActionsHaveTheirEvents(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "operate", "manual-actions.md"))
	require.NoError(t, err)
	known, rows := map[string]bool{}, map[string]string{} // rows by function: their events
	for _, a := range actions {
		known[a[0]] = true
	}
	name := regexp.MustCompile("`(\\w+)`")
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 || !strings.Contains(line, "`autopost ") {
			continue
		}
		sql, events := cells[2], ""
		if len(cells) == 7 {
			sql, events = cells[3], cells[4]
			for _, event := range name.FindAllStringSubmatch(cells[4]+cells[5], -1) {
				require.True(t, known[event[1]], "%s is not an action of an event", event[1])
			}
		}
		for _, function := range name.FindAllStringSubmatch(sql, -1) {
			rows[function[1]] = events
		}
	}
	written := regexp.MustCompile(`events ?\(([^)]*)\)`)
	require.NoError(t, fs.WalkDir(db.Functions, "functions", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(db.Functions, path)
		for _, f := range function.FindAllStringSubmatch(string(text), -1) {
			if !isPublic(f[2], f[3]) || !strings.Contains(f[2], "p_operator") {
				continue
			}
			events, listed := rows[f[1]]
			require.True(t, listed, "%s is not on the page of manual actions", f[1])
			delete(rows, f[1])
			if m := written.FindStringSubmatch(strings.ReplaceAll(f[4], "\n--", "")); m != nil {
				for _, event := range regexp.MustCompile(`\w+`).FindAllString(m[1], -1) {
					require.True(t, !known[event] || strings.Contains(events, "`"+event+"`"), "the row of %s lacks the event %s", f[1], event)
				}
			}
		}
		return err
	}))
	require.Empty(t, rows, "these are not functions with an operator")
}
