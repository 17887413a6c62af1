package outbound

import (
	"io"
	"net"
	"net/http/httptrace"
	"testing"

	"github.com/stretchr/testify/require"
)

// The headers of a request on a closed connection stay in a buffer. A server cannot close at exactly
// that time, so the test calls the trace directly.
func TestHeadersInTheBufferOfADeadConnectionAreNotWritten(t *testing.T) {
	near, far := net.Pipe()
	conn := &countedConn{Conn: near}
	conn.sent.Store(4096) // an earlier request

	var w watch
	trace := w.trace()
	require.False(t, w.written(), "no connection yet")
	trace.GotConn(httptrace.GotConnInfo{Conn: conn, Reused: true})
	require.False(t, w.written())
	trace.WroteHeaderField("Host", nil)
	require.False(t, w.written(), "in the buffer only")

	go func() { _, _ = io.ReadFull(far, make([]byte, 1)) }()
	_, err := conn.Write([]byte("P"))
	require.NoError(t, err)
	require.True(t, w.written(), "one byte is enough")

	trace.GotConn(httptrace.GotConnInfo{Conn: &countedConn{Conn: near}})
	require.True(t, w.written(), "a later hop does not change it")
	require.NoError(t, near.Close())
	require.NoError(t, far.Close())
}
