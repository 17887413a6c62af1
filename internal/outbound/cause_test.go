package outbound_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/outbound"
)

// An error of a call is readable with a viewer's key. It names no address.
func TestACauseNamesNoAddress(t *testing.T) {
	t.Parallel()
	at := &net.TCPAddr{IP: net.IPv4(10, 1, 2, 3), Port: 443}
	for _, c := range []struct {
		err  error
		want string
	}{
		{&url.Error{Op: "Get", URL: "https://e.x/?key=1", Err: &net.OpError{Op: "dial", Net: "tcp", Addr: at, Err: syscall.ECONNREFUSED}}, "dial: connection refused"},
		{&net.OpError{Op: "read", Net: "tcp", Source: at, Addr: at, Err: syscall.ECONNRESET}, "read: connection reset by peer"},
		{&net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "e.x", Server: "10.0.0.2:53"}}, "lookup e.x: no such host"},
		{fmt.Errorf("%w: %s", outbound.ErrBlockedAddress, at), "address is not allowed"},
		{&net.OpError{Op: "dial", Err: &net.AddrError{Err: "missing port in address", Addr: "10.1.2.3"}}, "missing port in address"},
		{errors.New("EOF"), "EOF"},
	} {
		require.Equal(t, c.want, outbound.Cause(c.err))
	}

	// Nobody listens there.
	client, err := outbound.Operator(outbound.OperatorConfig{})
	require.NoError(t, err)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:1/", nil)
	require.NoError(t, err)
	response, err := client.Do(request)
	if err == nil {
		_ = response.Body.Close()
	}
	require.EqualError(t, err, "call 127.0.0.1: dial: connect: connection refused")
}
