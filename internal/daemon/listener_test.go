package daemon

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/worker"
)

// clients is a listener whose connections come from given addresses.
type clients struct {
	net.Listener

	from []string
}

func (c *clients) Accept() (net.Conn, error) {
	if len(c.from) == 0 {
		return nil, io.EOF
	}
	at := c.from[0]
	c.from = c.from[1:]
	near, far := net.Pipe()
	go func() { _, _ = io.Copy(io.Discard, far) }()
	return client{near, at}, nil
}

type client struct {
	net.Conn

	at string
}

func (c client) RemoteAddr() net.Addr {
	at, err := net.ResolveTCPAddr("tcp", c.at)
	if err != nil {
		panic(err)
	}
	return at
}

func TestAnAddressHasAtMostSoManyConnections(t *testing.T) {
	t.Parallel()
	l := bounded(&clients{from: []string{
		"192.0.2.1:1", "192.0.2.1:2", "192.0.2.1:3", "[::ffff:192.0.2.1]:4", "192.0.2.2:1", "127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3",
	}}, 2)
	var got []string
	var first net.Conn
	for {
		conn, err := l.Accept()
		if err != nil {
			break
		}
		if first == nil {
			first = conn
		}
		got = append(got, conn.RemoteAddr().String())
	}
	require.Equal(t, []string{"192.0.2.1:1", "192.0.2.1:2", "192.0.2.2:1", "127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"}, got)

	require.NoError(t, first.Close())
	_ = first.Close() // counts once
	l.Listener.(*clients).from = []string{"192.0.2.1:5", "192.0.2.1:6"}
	conn, err := l.Accept()
	require.NoError(t, err)
	require.Equal(t, "192.0.2.1:5", conn.RemoteAddr().String())
	_, err = l.Accept()
	require.ErrorIs(t, err, io.EOF)
}

func TestAnswersAreNeitherKeptNorGuessed(t *testing.T) {
	t.Parallel()
	answer := httptest.NewRecorder()
	protected(http.NotFoundHandler()).ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	require.Equal(t, "no-store", answer.Header().Get("Cache-Control"))
	require.Equal(t, "nosniff", answer.Header().Get("X-Content-Type-Options"))
}

func TestAPanicOfAHandlerEndsOnlyItsRequest(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	panics := make(chan *worker.Panic, 1)
	ctx, stop := context.WithCancel(worker.ReportPanics(t.Context(), func(failure *worker.Panic) { panics <- failure }))
	ended := make(chan error, 1)
	go func() {
		ended <- serveHTTP(ctx, listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/panic":
				panic("boom")
			case "/abort":
				panic(http.ErrAbortHandler)
			}
		}))
	}()
	get := func(path string) error {
		answer, err := http.Get("http://" + listener.Addr().String() + path)
		if err == nil {
			_ = answer.Body.Close()
		}
		return err
	}
	require.Error(t, get("/panic"))
	require.EqualError(t, <-panics, "panic: string")
	require.Error(t, get("/abort"))
	require.NoError(t, get("/"))
	require.Empty(t, panics, "an aborted answer is not a bug")
	stop()
	require.NoError(t, <-ended)
}
