package published

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
)

// largest is the size of a body whose content is checked. Large uploads are not copied.
const largest = 1 << 20

// Platforms checks each request of our programs to the simulators of all platforms, which are mounted as in
// internal/sim/platforms. The requests of tests themselves, and those that were cut off, are not checked.
func Platforms(t testing.TB, next http.Handler) http.Handler {
	schemas := map[string]func() Schema{
		"/telegram": sync.OnceValue(func() Schema { return Telegram(t) }),
		"/max":      sync.OnceValue(func() Schema { return MAX(t) }),
		"/x":        sync.OnceValue(func() Schema { return X(t) }),
		"/youtube":  sync.OnceValue(func() Schema { return YouTube(t) }),
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		prefix := "/" + strings.Split(r.URL.Path, "/")[1]
		schema, described := schemas[prefix]
		if !described || !strings.HasPrefix(r.UserAgent(), "autopost/") {
			next.ServeHTTP(w, r)
			return
		}
		var seen bytes.Buffer
		if r.ContentLength <= largest {
			r.Body = struct {
				io.Reader
				io.Closer
			}{io.TeeReader(r.Body, &seen), r.Body}
		}
		next.ServeHTTP(w, r)
		assert.Empty(t, r.TransferEncoding, "%s %s is chunked", r.Method, r.URL.Path)
		if r.ContentLength <= largest && int64(seen.Len()) == r.ContentLength {
			http.StripPrefix(prefix, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				assert.NoError(t, schema()(r, seen.Bytes()), "a request that %s does not describe", prefix[1:])
			})).ServeHTTP(w, r)
		}
	})
}
