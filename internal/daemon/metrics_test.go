package daemon

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// Metrics on the common listener are for the same machine, also if a proxy there forwards a request.
func TestMetricsAreForTheSameMachine(t *testing.T) {
	handler := localOnly(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for _, c := range []struct {
		from, header string
		want         int
	}{
		{"127.0.0.1:5000", "", http.StatusOK},
		{"[::1]:5000", "", http.StatusOK},
		{"[::ffff:127.0.0.1]:5000", "", http.StatusOK},
		{"192.0.2.1:5000", "", http.StatusNotFound},
		{"10.0.0.1:5000", "", http.StatusNotFound},
		{"[2001:db8::1]:5000", "", http.StatusNotFound},
		{"", "", http.StatusNotFound},
		{"127.0.0.1:5000", "X-Forwarded-For", http.StatusNotFound},
		{"127.0.0.1:5000", "Forwarded", http.StatusNotFound},
		{"127.0.0.1:5000", "Via", http.StatusNotFound},
	} {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody)
		request.RemoteAddr = c.from
		if c.header != "" {
			request.Header.Set(c.header, "192.0.2.1")
		}
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		require.Equal(t, c.want, answer.Code, "%s %s", c.from, c.header)
	}
}
