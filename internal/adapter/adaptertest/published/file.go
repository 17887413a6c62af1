package published

import (
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// File reads a file of the reference material next to the repository. It logs a line if the file does
// not exist.
func File(t testing.TB, name string) ([]byte, bool) {
	t.Helper()
	dir, err := os.Getwd()
	require.NoError(t, err)
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		parent := filepath.Dir(dir)
		require.NotEqual(t, parent, dir, "no go.mod above the test")
		dir = parent
	}
	content, err := os.ReadFile(filepath.Join(filepath.Dir(dir), "shared", name))
	if os.IsNotExist(err) {
		t.Logf("NOT CHECKED: ../shared/%s is absent", name)
		return nil, false
	}
	require.NoError(t, err)
	return content, true
}

// Data parses a file of the reference data next to the repository. It logs a line if the file does not
// exist.
func Data(t testing.TB, name string, into any) bool {
	t.Helper()
	content, ok := File(t, filepath.Join("data", name))
	if !ok {
		return false
	}
	require.NoError(t, json.Unmarshal(content, into))
	return true
}

// parsed keeps the described APIs by file name. A parse takes tens of milliseconds.
var parsed sync.Map

// description is a parsed file of the reference data; ok is false where it is absent.
func description[T any](t testing.TB, name string) (api T, ok bool) {
	t.Helper()
	if known, found := parsed.Load(name); found {
		return known.(T), true
	}
	if !Data(t, name, &api) {
		return api, false
	}
	parsed.Store(name, api)
	return api, true
}
