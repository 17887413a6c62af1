package httpfetch

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/outbound"
)

func TestFewLargeDocumentsAreInMemoryAtOnce(t *testing.T) {
	r := NewMemoryLimit()
	large := func(ctx context.Context) (func(), error) {
		document, release, err := r.Read(ctx, bytes.NewReader(make([]byte, small+1)))
		if err == nil {
			require.Len(t, document, small+1)
		}
		return release, err
	}
	var releases []func()
	for range largeAtOnce {
		release, err := large(t.Context())
		require.NoError(t, err)
		releases = append(releases, release)
	}
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := large(impatient)
	require.ErrorIs(t, err, context.Canceled, "there is no room for one more")
	document, release, err := r.Read(t.Context(), strings.NewReader("small"))
	require.NoError(t, err, "a small one never waits")
	require.Equal(t, "small", string(document))
	release()
	releases[0]()
	release, err = large(t.Context())
	require.NoError(t, err)
	release()
	releases[1]()

	_, release, err = r.Read(t.Context(), bytes.NewReader(make([]byte, MaxBody+1)))
	require.ErrorIs(t, err, outbound.ErrTooLarge)
	release()
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "soon": 0, "-5": 0, "120": 2 * time.Minute, "99999999999": LongestHint,
		"Fri, 20 Nov 2026 12:10:00 GMT": 10 * time.Minute, "Fri, 20 Nov 2026 11:00:00 GMT": 0,
	} {
		require.Equal(t, want, retryAfter(http.Header{"Retry-After": {value}}, now), value)
	}
}

// hops returns the requests of a chain of redirects, last first.
func hops(status int, addresses ...string) *http.Response {
	var request *http.Request
	for _, address := range addresses {
		u, err := url.Parse(address)
		if err != nil {
			panic(err)
		}
		next := &http.Request{URL: u}
		if request != nil {
			next.Response = &http.Response{StatusCode: status, Request: request}
		}
		request = next
	}
	return &http.Response{StatusCode: http.StatusOK, Request: request}
}

func TestPermanentRedirects(t *testing.T) {
	require.Empty(t, Moved(hops(301, "https://a.example/")))
	require.Equal(t, "https://c.example/", Moved(hops(308, "http://a.example/", "https://b.example/", "https://c.example/")))
	require.Empty(t, Moved(hops(302, "https://a.example/", "https://b.example/")))
	require.Empty(t, Moved(hops(301, "https://a.example/", "http://a.example/")), "encryption is not given up")
}
