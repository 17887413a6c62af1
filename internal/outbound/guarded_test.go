package outbound_test

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/outbound"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// names is a resolver with a fixed answer for every name.
type names []netip.Addr

func (n names) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) { return n, nil }

func fetch(t *testing.T, cfg outbound.GuardedConfig, address string) (*http.Response, error) {
	t.Helper()
	client := outbound.Guarded(cfg)
	t.Cleanup(client.CloseIdleConnections)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	require.NoError(t, err)
	return client.Do(req)
}

func TestGuardedRefusesEveryAddressThatIsNotPublic(t *testing.T) {
	for _, address := range []string{
		"0.0.0.0", "0.1.2.3", "10.1.2.3", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.255.255.254",
		"168.63.129.16", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.2.1", "192.88.99.1",
		"192.168.1.1", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.1.1.1",
		"240.0.0.1", "255.255.255.255", "::", "::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::7f00:1", "64:ff9b::7f00:1",
		"64:ff9b:1::1", "100::1", "2001::1", "2001:2::1", "2001:db8::1", "2002:7f00:1::", "3fff::1", "5f00::1",
		"fc00::1", "fd00:ec2::254", "fe80::1", "fec0::1", "ff02::1",
	} {
		t.Run(address, func(t *testing.T) {
			host := netip.MustParseAddr(address)
			_, err := fetch(t, outbound.GuardedConfig{Resolver: names{host}}, "http://name.test/")
			require.ErrorIs(t, err, outbound.ErrBlockedAddress)
			_ = requireError(t, err, false)

			literal := address
			if host.Is6() {
				literal = "[" + address + "]"
			}
			_, err = fetch(t, outbound.GuardedConfig{}, "http://"+literal+"/")
			require.ErrorIs(t, err, outbound.ErrBlockedAddress)
		})
	}
}

func TestGuardedRefusesAHostWithOnePrivateAddress(t *testing.T) {
	mixed := names{netip.MustParseAddr("93.184.215.14"), netip.MustParseAddr("10.0.0.1")}
	_, err := fetch(t, outbound.GuardedConfig{Resolver: mixed}, "http://name.test/")
	require.ErrorIs(t, err, outbound.ErrBlockedAddress)
}

func TestGuardedPortsAndSchemes(t *testing.T) {
	public := names{netip.MustParseAddr("93.184.215.14")}
	for _, port := range []int{22, 25, 81, 3306, 8444} {
		_, err := fetch(t, outbound.GuardedConfig{Resolver: public}, fmt.Sprintf("http://name.test:%d/", port))
		require.ErrorIs(t, err, outbound.ErrBlockedPort)
	}
	for _, scheme := range []string{"ftp", "file", "gopher"} {
		_, err := fetch(t, outbound.GuardedConfig{Resolver: public}, scheme+"://name.test/")
		require.ErrorIs(t, err, outbound.ErrBlockedScheme)
	}
	// An allowed port of a public address is dialled, until the context ends.
	for _, port := range []int{80, 443, 8080, 8443} {
		ctx, cancel := context.WithCancel(t.Context())
		cut := resolverFunc(func() []netip.Addr { cancel(); return public })
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://name.test:%d/", port), nil)
		require.NoError(t, err)
		_, err = outbound.Guarded(outbound.GuardedConfig{Resolver: cut}).Do(req)
		require.ErrorIs(t, err, context.Canceled)
	}
}

type resolverFunc func() []netip.Addr

func (f resolverFunc) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return f(), nil
}

func TestGuardedAllowListOpensItsNetworkOnly(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "feed") }))
	t.Cleanup(server.Close)
	resp, err := fetch(t, outbound.GuardedConfig{Allow: loopback}, server.URL)
	require.NoError(t, err)
	body, err := outbound.ReadAll(resp.Body, 4)
	require.NoError(t, err)
	require.Equal(t, "feed", string(body))
	require.NoError(t, resp.Body.Close())

	_, err = fetch(t, outbound.GuardedConfig{Allow: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}, server.URL)
	require.ErrorIs(t, err, outbound.ErrBlockedAddress)
}

func TestGuardedRedirects(t *testing.T) {
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	mux.HandleFunc("/hop/{left}", func(w http.ResponseWriter, r *http.Request) {
		next := map[string]string{"4": "3", "3": "2", "2": "1", "1": "0"}[r.PathValue("left")]
		if next == "" {
			return
		}
		http.Redirect(w, r, "/hop/"+next, http.StatusFound)
	})
	mux.HandleFunc("/inside", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://10.0.0.1/secret", http.StatusFound)
	})

	resp, err := fetch(t, outbound.GuardedConfig{Allow: loopback}, server.URL+"/hop/3")
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())

	_, err = fetch(t, outbound.GuardedConfig{Allow: loopback}, server.URL+"/hop/4")
	require.ErrorIs(t, err, outbound.ErrRedirect)

	_, err = fetch(t, outbound.GuardedConfig{Allow: loopback}, server.URL+"/inside")
	require.ErrorIs(t, err, outbound.ErrBlockedAddress)
}

func TestStrictRequiresTLSAndFollowsNoRedirect(t *testing.T) {
	public := resolverFunc(func() []netip.Addr { return []netip.Addr{netip.MustParseAddr("93.184.215.14")} })
	_, err := fetch(t, outbound.GuardedConfig{Strict: true, Resolver: public}, "http://name.test/")
	require.ErrorIs(t, err, outbound.ErrBlockedScheme)
	failure, ok := errors.AsType[*outbound.Error](err)
	require.True(t, ok)
	require.False(t, failure.Written)

	server := httptest.NewServer(http.RedirectHandler("/elsewhere", http.StatusFound))
	t.Cleanup(server.Close)
	resp, err := fetch(t, outbound.GuardedConfig{Strict: true, Allow: loopback}, server.URL)
	require.NoError(t, err, "an allowed network needs no TLS")
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusFound, resp.StatusCode)

	inside := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(inside.Close)
	_, err = fetch(t, outbound.GuardedConfig{Strict: true}, inside.URL)
	require.ErrorIs(t, err, outbound.ErrBlockedAddress, "TLS does not unblock an address")
}

func TestGuardedKeepsCredentialsFromAnotherHost(t *testing.T) {
	seen := make(chan http.Header, 1)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen <- r.Header }))
	t.Cleanup(other.Close)
	target, err := url.Parse(other.URL)
	require.NoError(t, err)
	target.User = url.UserPassword("planted", "planted")
	first := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, target.String(), http.StatusFound)
	}))
	t.Cleanup(first.Close)

	// The same address with another port: net/http alone would keep the header.
	client := outbound.Guarded(outbound.GuardedConfig{Allow: loopback})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, first.URL+"/?key=private", nil)
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer private")
	req.Header.Set("Cookie", "session=private")
	req.Header.Set("X-Api-Key", "private")
	resp, err := client.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	header := <-seen
	for _, name := range []string{"Authorization", "Cookie", "Referer", "X-Api-Key"} {
		require.Empty(t, header.Get(name), name)
	}
}

func TestGuardedErrorHidesUserInformationAndQuery(t *testing.T) {
	_, err := fetch(t, outbound.GuardedConfig{}, "http://user:"+canary+"@10.0.0.1/feed?key="+canary)
	_ = requireError(t, err, false)
	require.NotContains(t, err.Error(), "user")
}

func TestGuardedCapsTheBodyAfterDecompression(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/declared" {
			w.Header().Set("Content-Length", "5000")
			_, _ = io.WriteString(w, strings.Repeat("x", 5000))
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		zip := gzip.NewWriter(w)
		_, _ = io.WriteString(zip, strings.Repeat("x", 1<<20))
		_ = zip.Close()
	}))
	t.Cleanup(server.Close)
	cfg := outbound.GuardedConfig{Allow: loopback, MaxBytes: 4096}

	resp, err := fetch(t, cfg, server.URL+"/bomb")
	require.NoError(t, err)
	n, err := io.Copy(io.Discard, resp.Body)
	require.ErrorIs(t, err, outbound.ErrTooLarge)
	require.EqualValues(t, 4096, n)
	require.NoError(t, resp.Body.Close())

	_, err = fetch(t, cfg, server.URL+"/declared")
	require.ErrorIs(t, err, outbound.ErrTooLarge)
}

func TestGuardedDeadlineCoversTheBody(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "first")
		w.(http.Flusher).Flush()
		<-release
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(release) })
	resp, err := fetch(t, outbound.GuardedConfig{Allow: loopback, Timeout: 100 * time.Millisecond}, server.URL)
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, resp.Body)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, resp.Body.Close())
}

func TestGuardedCapsHeaders(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Long", strings.Repeat("x", 128<<10))
	}))
	t.Cleanup(server.Close)
	_, err := fetch(t, outbound.GuardedConfig{Allow: loopback}, server.URL)
	require.Error(t, err)
}

func TestLimitAcceptsTheExactLength(t *testing.T) {
	for length, tooLong := range map[int]bool{0: false, 9: false, 10: false, 11: true, 5000: true} {
		body, err := outbound.ReadAll(strings.NewReader(strings.Repeat("x", length)), 10)
		require.Equal(t, tooLong, errors.Is(err, outbound.ErrTooLarge), "length %d: %v", length, err)
		require.Len(t, body, min(length, 10))
	}
}

// A name that does not exist and a name inside the network have the same error, with TLS or without.
func TestNamesOfTheOwnNetworkLookMissing(t *testing.T) {
	inside := resolverFunc(func() []netip.Addr { return []netip.Addr{netip.MustParseAddr("10.0.0.7")} })
	texts := map[string]bool{}
	for _, resolver := range []outbound.Resolver{inside, missing{}} {
		for _, address := range []string{"http://name.test/", "https://name.test/", "https://name.test:22/"} {
			for _, strict := range []bool{false, true} {
				_, err := fetch(t, outbound.GuardedConfig{Strict: strict, Resolver: resolver}, address)
				require.ErrorIs(t, err, outbound.ErrNoPublicAddress, address)
				require.ErrorIs(t, err, outbound.ErrBlockedAddress, address)
				texts[err.Error()] = true
			}
		}
	}
	require.Equal(t, map[string]bool{"call name.test: the host has no public address: address is not allowed": true}, texts)
}

// missing knows no name.
type missing struct{}

func (missing) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return nil, &net.DNSError{Err: "no such host", Name: "name.test", IsNotFound: true}
}
