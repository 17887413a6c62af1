package published

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// File reads a file of the material that lies beside the repository, and says loudly
// when it is not there.
func File(t *testing.T, name string) ([]byte, bool) {
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

// Data reads a file of the reference data that lies beside the repository, and
// says loudly when it is not there.
func Data(t *testing.T, name string, into any) bool {
	t.Helper()
	content, ok := File(t, filepath.Join("data", name))
	if !ok {
		return false
	}
	require.NoError(t, json.Unmarshal(content, into))
	return true
}
