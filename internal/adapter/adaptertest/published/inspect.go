// Package published checks the requests of tests against published descriptions: the methods of the
// Telegram Bot API, the OpenAPI documents of MAX and X, the discovery document of YouTube, and the
// tables of the fact sheets.
package published

import (
	"bytes"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Schema returns an error if a request with this body is invalid.
type Schema func(r *http.Request, body []byte) error

// Inspect checks every complete request: an exact length, no chunks, and the published schema if there
// is one.
func Inspect(t testing.TB, next http.Handler, schema Schema) http.Handler {
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
