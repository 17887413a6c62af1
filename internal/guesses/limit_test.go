package guesses

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

// door takes the secret "good", and answers 405 before it looks at one.
type door struct {
	*Limit

	// looked is how many requests it was given.
	looked int
	log    strings.Builder
}

func newDoor() *door {
	d := &door{}
	d.Limit = New(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.looked++
		switch {
		case r.Method == http.MethodGet:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case r.Header.Get("Authorization") != "Bearer good":
			w.WriteHeader(http.StatusUnauthorized)
		}
	}), slog.New(slog.NewTextHandler(&d.log, nil)))
	return d
}

func (d *door) ask(method, from, path, secret string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	r.RemoteAddr = from
	r.Header.Set("Authorization", "Bearer "+secret)
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	return w
}

const (
	push     = "/hooks/push"
	stranger = "192.0.2.7:4711"
)

// guess asks so often with another wrong secret each time.
func (d *door) guess(times int, from, path string) (last *httptest.ResponseRecorder) {
	for n := range times {
		last = d.ask(http.MethodPost, from, path, fmt.Sprint("guess-", n))
	}
	return last
}

func TestWhoGuessesIsToldToWait(t *testing.T) {
	t.Parallel()
	for _, path := range []string{push, "/hooks/telegram", "/hooks/push/w/e", "/api/v1/channels", "/api"} {
		synctest.Test(t, func(t *testing.T) {
			d := newDoor()
			require.Equal(t, 401, d.guess(atOnce, stranger, path).Code)
			refused := d.guess(10, stranger, path)
			require.Equal(t, 429, refused.Code)
			require.Equal(t, atOnce, d.looked, "nobody looks at the secret of one who is refused")
			require.Equal(t, "application/problem+json", refused.Header().Get("Content-Type"))
			var told struct {
				Type   string
				Status int
			}
			require.NoError(t, json.Unmarshal(refused.Body.Bytes(), &told))
			require.Equal(t, 429, told.Status)
			require.Equal(t, "urn:autopost:problem:wrong-secrets", told.Type)
			require.Equal(t, 1, strings.Count(d.log.String(), "http.address_limited"), "once, not for each request")

			wait, err := strconv.Atoi(refused.Header().Get("Retry-After"))
			require.NoError(t, err)
			<-time.After(time.Duration(wait) * time.Second)
			require.Equal(t, 401, d.ask(http.MethodPost, stranger, path, "again").Code)
			require.Equal(t, 429, d.ask(http.MethodPost, stranger, path, "again").Code)
		})
	}
}

func TestWhoIsKnownIsNeverHindered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDoor()
		for range 10 * atOnce {
			require.Equal(t, 200, d.ask(http.MethodPost, stranger, push, "good").Code)
		}
		require.Equal(t, 429, d.guess(2*atOnce, stranger, push).Code)
		require.Equal(t, 200, d.ask(http.MethodPost, stranger, push, "good").Code, "a neighbour's guesses are not its own")
		require.Equal(t, 401, d.ask(http.MethodPost, "192.0.2.8:1", push, "guess").Code, "each address by itself")
		require.Equal(t, 405, d.ask(http.MethodGet, stranger, "/healthz", "guess").Code)
	})
}

// What is answered before the secret is looked at does not make it known.
func TestAnotherAnswerMakesNoSecretKnown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDoor()
		require.Equal(t, 405, d.ask(http.MethodGet, stranger, push, "guess").Code)
		d.guess(atOnce, stranger, push)
		require.Equal(t, 429, d.ask(http.MethodPost, stranger, push, "guess").Code)
	})
}

func TestAnAddressIsANetworkInIPv6(t *testing.T) {
	t.Parallel()
	for remote, want := range map[string]string{
		"192.0.2.7:1": "192.0.2.7/32", "[::ffff:192.0.2.7]:1": "192.0.2.7/32", "[2001:db8:1:2:3::4]:1": "2001:db8:1:2::/64", "[fe80::1%eth0]:1": "fe80::/64",
		"@": "invalid Prefix",
	} {
		require.Equal(t, want, source(remote).String())
	}
}

// However many come, what is remembered of them is bounded.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	var seen recent[int, bool]
	for n := range 5 * kept {
		seen.put(n, true)
		_, _ = seen.get(0)
	}
	require.LessOrEqual(t, len(seen.young)+len(seen.old), 2*kept)
	_, kept := seen.get(0)
	require.True(t, kept, "what is asked for stays")
}
