package wire_test

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

	"autopost/test/wire"
)

// receiver counts the requests that came to it whole.
func receiver(t *testing.T) (line *wire.Line, got *atomic.Int64, post func(size int) error) {
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
	line = wire.Open(t, "tcp", server.Listener.Addr().String())
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
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

// Each trouble is what its name says, for caller and receiver, and ends when it is mended.
func TestTroubles(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		trouble wire.Trouble
		fails   bool
		arrives int64
	}{
		{wire.Trouble{Kind: wire.Fine}, false, 1},
		{wire.Trouble{Kind: wire.Late, Delay: 20 * time.Millisecond}, false, 1},
		{wire.Trouble{Kind: wire.Drip, Delay: time.Millisecond}, false, 1},
		{wire.Trouble{Kind: wire.Cut, After: 300}, true, 0},
		{wire.Trouble{Kind: wire.Reset, After: 300}, true, 0},
		{wire.Trouble{Kind: wire.Silent, After: 300}, true, 0},
		{wire.Trouble{Kind: wire.Deaf}, true, 1},
	} {
		t.Run(string(test.trouble.Kind), func(t *testing.T) {
			t.Parallel()
			line, got, post := receiver(t)
			line.Make(test.trouble)
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
	line, _, post := receiver(t)
	line.Unplug()
	require.Error(t, post(1))
	line.Plug()
	require.NoError(t, post(1))
}

func TestSwizzleEndsMended(t *testing.T) {
	t.Parallel()
	line, _, post := receiver(t)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	line.Swizzle(ctx, rand.New(rand.NewPCG(1, 2)), 20*time.Millisecond)
	line.HangUp()
	require.NoError(t, post(10))
}

// A line whose far end is away refuses, and hides nothing.
func TestNothingBehind(t *testing.T) {
	t.Parallel()
	line := wire.Open(t, "unix", "/nowhere/there/is/none")
	conn, err := net.Dial("tcp", line.Addr())
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_, err = conn.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
}
