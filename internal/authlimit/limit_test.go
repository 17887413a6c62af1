package authlimit

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// guarded is a Limit before a handler that accepts the secret "good" and answers 405 to GET before it
// checks the secret.
type guarded struct {
	*Limit

	// served is the number of requests that reached the handler.
	served int
	log    strings.Builder
}

func newGuarded() *guarded {
	d := &guarded{}
	d.Limit = New(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.served++
		switch {
		case r.Method == http.MethodGet:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case r.Header.Get("Authorization") != "Bearer good":
			w.WriteHeader(http.StatusUnauthorized)
		}
	}), slog.New(slog.NewTextHandler(&d.log, nil)))
	return d
}

func (d *guarded) ask(method, from, path, secret string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	r.RemoteAddr = from
	r.Header.Set("Authorization", "Bearer "+secret)
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	return w
}

const (
	push   = "/hooks/push"
	client = "192.0.2.7:4711"
)

// guess sends requests with a different wrong secret each time.
func (d *guarded) guess(times int, from, path string) (last *httptest.ResponseRecorder) {
	for n := range times {
		last = d.ask(http.MethodPost, from, path, fmt.Sprint("guess-", n))
	}
	return last
}

func TestGuessesAreLimited(t *testing.T) {
	t.Parallel()
	for _, path := range []string{push, "/hooks/telegram", "/hooks/push/w/e", "/api/v1/channels", "/api"} {
		synctest.Test(t, func(t *testing.T) {
			d := newGuarded()
			require.Equal(t, 401, d.guess(atOnce, client, path).Code)
			refused := d.guess(10, client, path)
			require.Equal(t, 429, refused.Code)
			require.Equal(t, atOnce, d.served, "a refused request does not reach the handler")
			require.Equal(t, "application/problem+json", refused.Header().Get("Content-Type"))
			var problem struct {
				Type   string
				Status int
			}
			require.NoError(t, json.Unmarshal(refused.Body.Bytes(), &problem))
			require.Equal(t, 429, problem.Status)
			require.Equal(t, "urn:autopost:problem:wrong-secrets", problem.Type)
			require.Equal(t, 1, strings.Count(d.log.String(), "http.address_limited"), "logged once")

			wait, err := strconv.Atoi(refused.Header().Get("Retry-After"))
			require.NoError(t, err)
			require.Equal(t, `"wrong-secrets";q=30;w=30`, refused.Header().Get("RateLimit-Policy"))
			require.Equal(t, fmt.Sprintf(`"wrong-secrets";r=0;t=%d`, wait), refused.Header().Get("RateLimit"))
			<-time.After(time.Duration(wait) * time.Second)
			require.Equal(t, 401, d.ask(http.MethodPost, client, path, "again").Code)
			require.Equal(t, 429, d.ask(http.MethodPost, client, path, "again").Code)
		})
	}
}

func TestValidSecretIsNeverLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newGuarded()
		for range 10 * atOnce {
			require.Equal(t, 200, d.ask(http.MethodPost, client, push, "good").Code)
		}
		require.Equal(t, 429, d.guess(2*atOnce, client, push).Code)
		require.Equal(t, 200, d.ask(http.MethodPost, client, push, "good").Code, "guesses from the same address do not affect it")
		require.Equal(t, 401, d.ask(http.MethodPost, "192.0.2.8:1", push, "guess").Code, "each address has its own count")
		require.Equal(t, 405, d.ask(http.MethodGet, client, "/healthz", "guess").Code)
	})
}

func TestOnlySuccessMakesASecretValid(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newGuarded()
		require.Equal(t, 405, d.ask(http.MethodGet, client, push, "guess").Code)
		d.guess(atOnce, client, push)
		require.Equal(t, 429, d.ask(http.MethodPost, client, push, "guess").Code)
	})
}

func TestIPv6AddressCountsAsItsNetwork(t *testing.T) {
	t.Parallel()
	for remote, want := range map[string]string{
		"192.0.2.7:1": "192.0.2.7/32", "[::ffff:192.0.2.7]:1": "192.0.2.7/32", "[2001:db8:1:2:3::4]:1": "2001:db8:1:2::/64", "[fe80::1%eth0]:1": "fe80::/64",
		"@": "invalid Prefix",
	} {
		require.Equal(t, want, source(remote).String())
	}
}

func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	var seen recent[int, bool]
	for n := range 5 * kept {
		seen.put(n, true)
		_, _ = seen.get(0)
	}
	require.LessOrEqual(t, len(seen.young)+len(seen.old), 2*kept)
	_, kept := seen.get(0)
	require.True(t, kept, "used entries are kept")
}
