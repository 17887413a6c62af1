package netfault_test

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/wait"
	"autopost/test/netfault"
)

// receiver starts a server that counts complete requests.
func receiver(t *testing.T, timeout time.Duration) (line *netfault.Proxy, got *atomic.Int64, post func(size int) error) {
	t.Helper()
	got = new(atomic.Int64)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err == nil {
			got.Add(1)
		}
		_, _ = io.WriteString(w, strings.Repeat("x", 100))
	}))
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	line = netfault.Open(t, "tcp", server.Listener.Addr().String())
	client := &http.Client{Timeout: timeout, Transport: &http.Transport{DisableKeepAlives: true}}
	return line, got, func(size int) error {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+line.Addr(), strings.NewReader(strings.Repeat("y", size)))
		require.NoError(t, err)
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer func() { _ = resp.Body.Close() }()
		_, err = io.Copy(io.Discard, resp.Body)
		return err
	}
}

// Each fault has the effect of its name for the caller and the receiver, and ends with Mend.
func TestFaults(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		fault   netfault.Fault
		fails   bool
		arrives int64
	}{
		{netfault.Fault{Kind: netfault.Fine}, false, 1},
		{netfault.Fault{Kind: netfault.Late, Delay: 20 * time.Millisecond}, false, 1},
		{netfault.Fault{Kind: netfault.Drip, Delay: time.Millisecond}, false, 1},
		{netfault.Fault{Kind: netfault.Cut, After: 300}, true, 0},
		{netfault.Fault{Kind: netfault.Reset, After: 300}, true, 0},
		{netfault.Fault{Kind: netfault.Silent, After: 300}, true, 0},
		{netfault.Fault{Kind: netfault.Deaf}, true, 1},
	} {
		t.Run(string(test.fault.Kind), func(t *testing.T) {
			t.Parallel()
			timeout := wait.Bound
			if test.fault.Kind == netfault.Silent {
				timeout = 5 * time.Second // the request must fail
			}
			line, got, post := receiver(t, timeout)
			line.Make(test.fault)
			err := post(600)
			require.Equal(t, test.fails, err != nil, err)
			require.Equal(t, test.arrives, got.Load())
			line.Mend()
			line.HangUp()
			require.NoError(t, post(600))
			require.Equal(t, test.arrives+1, got.Load())
		})
	}
}

func TestUnplugged(t *testing.T) {
	t.Parallel()
	line, _, post := receiver(t, wait.Bound)
	line.Unplug()
	require.Error(t, post(1))
	line.Plug()
	require.NoError(t, post(1))
}

func TestSwizzleEndsMended(t *testing.T) {
	t.Parallel()
	line, _, post := receiver(t, wait.Bound)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	line.Swizzle(ctx, rand.New(rand.NewPCG(1, 2)), 20*time.Millisecond)
	line.HangUp()
	require.NoError(t, post(10))
}

// A proxy without a target closes the connection.
func TestMissingTargetClosesTheConnection(t *testing.T) {
	t.Parallel()
	line := netfault.Open(t, "unix", "/nonexistent/socket")
	conn, err := net.Dial("tcp", line.Addr())
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_, err = conn.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
}
