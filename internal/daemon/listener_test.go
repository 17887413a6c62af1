package daemon

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
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
