package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// creators are the commands that may create the data folder, or that use their own.
var creators = []string{"autopost serve", "autopost demo", "autopost migrate", "autopost bench"}

// A mistyped data folder must not get a database. Each command runs its first example.
func TestOnlySomeCommandsCreateADatabase(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "mistyped")
	t.Setenv("DATABASE_URL", "")
	t.Setenv("AUTOPOST_DATA_DIR", folder)
	for _, cmd := range commandsOf(rootCommand()) {
		path := cmd.CommandPath()
		if cmd.HasSubCommands() || slices.Contains(creators, path) || path == "autopost source test" { // it fetches its example
			continue
		}
		first, _, _ := strings.Cut(strings.ReplaceAll(cmd.Example, "\\\n", ""), "\n")
		words := shellWords(first)
		run(t.Context(), words[slices.Index(words, "autopost")+1:])
		_, err := os.Stat(folder)
		require.ErrorIs(t, err, os.ErrNotExist, "%s created the folder", path)
	}
}

func TestMissingDatabaseIsNamed(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "mistyped")
	t.Setenv("DATABASE_URL", "")
	t.Setenv("AUTOPOST_DATA_DIR", folder)
	err := withStore(t.Context(), nil)
	require.ErrorContains(t, err, "AUTOPOST_DATA_DIR must be a folder with a database, got "+folder)
	require.ErrorContains(t, err, "autopost migrate")
}
