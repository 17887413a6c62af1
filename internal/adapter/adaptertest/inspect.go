package adaptertest

import (
	"bytes"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Schema says what is wrong with a request and its whole body.
type Schema func(r *http.Request, body []byte) error

// Inspect checks every request that arrives whole: an exact length, no chunks, and
// the published schema, where there is one.
func Inspect(t *testing.T, next http.Handler, schema Schema) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var seen bytes.Buffer
		if schema != nil {
			r.Body = struct {
				io.Reader
				io.Closer
			}{io.TeeReader(r.Body, &seen), r.Body}
		}
		next.ServeHTTP(w, r)
		assert.Empty(t, r.TransferEncoding, "%s is chunked", r.Method)
		assert.GreaterOrEqual(t, r.ContentLength, int64(0))
		if schema != nil && int64(seen.Len()) == r.ContentLength {
			assert.NoError(t, schema(r, seen.Bytes()))
		}
	})
}

// SharedData reads a file of the reference data that lies beside the repository, and
// says loudly when it is not there.
func SharedData(t *testing.T, name string, into any) bool {
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
	content, err := os.ReadFile(filepath.Join(filepath.Dir(dir), "shared", "data", name))
	if os.IsNotExist(err) {
		t.Logf("NOT CHECKED against the published schema: ../shared/data/%s is absent", name)
		return false
	}
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(content, into))
	return true
}

// quiet is a logger for servers whose complaints a test provokes.
func quiet() *log.Logger { return log.New(io.Discard, "", 0) }
