package outbound_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/outbound"
)

// Each client names the program, also after a redirect. A request keeps a name that it already has.
func TestRequestsNameTheProgram(t *testing.T) {
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.UserAgent())
		if r.URL.Path == "/moved" {
			http.Redirect(w, r, "/", http.StatusFound)
		}
	}))
	defer server.Close()
	operator, err := outbound.Operator(outbound.OperatorConfig{})
	require.NoError(t, err)
	send := func(client *outbound.Client, path, name string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
		require.NoError(t, err)
		if name != "" {
			req.Header.Set("User-Agent", name)
		}
		answer, err := client.Do(req)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		client.CloseIdleConnections()
	}
	guarded := outbound.Guarded(outbound.GuardedConfig{Allow: loopback})
	send(operator, "/", "")
	send(guarded, "/moved", "")
	send(guarded, "/", "other")
	ours := "autopost/" + outbound.Version()
	require.Equal(t, []string{ours, ours, ours, "other"}, got)
	require.NotEqual(t, "autopost/", ours)
}
