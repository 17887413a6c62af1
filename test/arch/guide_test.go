package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"autopost/internal/testing/source"

	"github.com/stretchr/testify/require"
)

// block is a piece of code in a page. What stands behind its language is the file it is from.
var block = regexp.MustCompile("(?ms)^```(go|sql)( \\S+)?\n(.*?)^```$")

// A guide that shows code of its own is wrong sooner or later: what it shows stands in
// a file that is compiled and tested, word by word; how it is aligned does not matter.
func TestGuidesShowCodeThatRuns(t *testing.T) {
	t.Parallel()
	root, err := source.Root()
	require.NoError(t, err)
	pages, err := filepath.Glob(filepath.Join(root, "docs", "extend", "*.md"))
	require.NoError(t, err)
	require.NotEmpty(t, pages)
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		shown := block.FindAllStringSubmatch(string(text), -1)
		require.NotEmpty(t, shown, page)
		for _, piece := range shown {
			from := strings.TrimSpace(piece[2])
			code, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(from)))
			if err != nil || from == "" {
				t.Errorf("%s: a piece of %s names no file of ours: %q", filepath.Base(page), piece[1], from)
				continue
			}
			if !strings.Contains(words(string(code)), words(piece[3])) {
				t.Errorf("%s shows what does not stand in %s:\n%s", filepath.Base(page), from, piece[3])
			}
		}
	}
}

func words(text string) string { return " " + strings.Join(strings.Fields(text), " ") + " " }
