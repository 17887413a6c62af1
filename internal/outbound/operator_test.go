package outbound_test

import (
	"bufio"
	"context"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/outbound"
	"autopost/internal/testing/wait"
)

const canary = "123456:AAcanaryTOKENcanary"

// peer is a server that decides per connection and request how it uses the socket.
type peer struct {
	listener net.Listener
	requests atomic.Int64
	closed   chan struct{}
}

// newPeer passes every request to answer. When answer returns false, it closes the connection and sends
// to closed.
func newPeer(t *testing.T, answer func(n int64, req *http.Request, conn net.Conn) bool) *peer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &peer{listener: listener, closed: make(chan struct{}, 16)}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go p.serve(conn, answer)
		}
	}()
	return p
}

func (p *peer) serve(conn net.Conn, answer func(int64, *http.Request, net.Conn) bool) {
	defer func() { p.closed <- struct{}{} }()
	defer func() { _ = conn.Close() }()
	reader := bufio.NewReader(conn)
	for {
		req, err := http.ReadRequest(reader)
		if err != nil {
			return
		}
		if !answer(p.requests.Add(1), req, conn) {
			return
		}
	}
}

func ok(req *http.Request, conn net.Conn) {
	_, _ = io.Copy(io.Discard, req.Body)
	_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
}

func post(t *testing.T, client *outbound.Client, address string) (*http.Response, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), wait.Bound)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/bot"+canary+"/send", strings.NewReader("body"))
	require.NoError(t, err)
	return client.Do(req)
}

func drain(t *testing.T, resp *http.Response) {
	t.Helper()
	_, err := io.Copy(io.Discard, resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
}

func operator(t *testing.T, cfg outbound.OperatorConfig) *outbound.Client {
	t.Helper()
	client, err := outbound.Operator(cfg)
	require.NoError(t, err)
	t.Cleanup(client.CloseIdleConnections)
	return client
}

func requireError(t *testing.T, err error, written bool) *outbound.Error {
	t.Helper()
	var failure *outbound.Error
	require.ErrorAs(t, err, &failure)
	require.NotContains(t, err.Error(), canary)
	require.NotContains(t, err.Error(), "/send")
	require.Equal(t, written, failure.Written, "written: %v", err)
	return failure
}

func TestPostIsNotRepeatedOnAReusedConnection(t *testing.T) {
	server := newPeer(t, func(n int64, req *http.Request, conn net.Conn) bool {
		if n == 1 {
			ok(req, conn)
			return true
		}
		return false // read the second request, close without an answer
	})
	client := operator(t, outbound.OperatorConfig{})
	resp, err := post(t, client, server.listener.Addr().String())
	require.NoError(t, err)
	drain(t, resp)

	_, err = post(t, client, server.listener.Addr().String())
	_ = requireError(t, err, true)
	require.EqualValues(t, 2, server.requests.Load(), "net/http must not have sent it a third time")
}

func TestPostOnAConnectionTheServerClosedIsNeverSentTwice(t *testing.T) {
	server := newPeer(t, func(n int64, req *http.Request, conn net.Conn) bool {
		ok(req, conn)
		return n != 1 // close the idle connection after the first answer
	})
	client := operator(t, outbound.OperatorConfig{})
	resp, err := post(t, client, server.listener.Addr().String())
	require.NoError(t, err)
	drain(t, resp)
	<-server.closed

	resp, err = post(t, client, server.listener.Addr().String())
	if err != nil {
		// The client took the closed connection before it noticed the close; the request was not sent.
		require.EqualValues(t, 1, server.requests.Load())
		return
	}
	drain(t, resp)
	require.EqualValues(t, 2, server.requests.Load())
}

func TestWrittenByKindOfFailure(t *testing.T) {
	t.Run("connection refused", func(t *testing.T) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		require.NoError(t, listener.Close())
		_, err = post(t, operator(t, outbound.OperatorConfig{}), listener.Addr().String())
		require.Equal(t, "127.0.0.1", requireError(t, err, false).Host)
	})
	t.Run("certificate not trusted", func(t *testing.T) {
		server := httptest.NewTLSServer(http.NotFoundHandler())
		t.Cleanup(server.Close)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader("body"))
		require.NoError(t, err)
		_, err = operator(t, outbound.OperatorConfig{}).Do(req)
		_ = requireError(t, err, false)
		require.ErrorIs(t, err, outbound.ErrUntrusted)
	})
	t.Run("closed without an answer", func(t *testing.T) {
		server := newPeer(t, func(int64, *http.Request, net.Conn) bool { return false })
		_, err := post(t, operator(t, outbound.OperatorConfig{}), server.listener.Addr().String())
		_ = requireError(t, err, true)
	})
	t.Run("deadline while the server is silent", func(t *testing.T) {
		got := make(chan struct{})
		release := make(chan struct{})
		server := newPeer(t, func(int64, *http.Request, net.Conn) bool { close(got); <-release; return false })
		t.Cleanup(func() { close(release) })
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-got; cancel() }()
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+server.listener.Addr().String(), strings.NewReader("body"))
		require.NoError(t, err)
		_, err = operator(t, outbound.OperatorConfig{}).Do(req)
		_ = requireError(t, err, true)
		require.ErrorIs(t, err, context.Canceled)
	})
	t.Run("context ended before the call", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1:1", strings.NewReader("body"))
		require.NoError(t, err)
		_, err = operator(t, outbound.OperatorConfig{}).Do(req)
		_ = requireError(t, err, false)
	})
	t.Run("answer is not HTTP", func(t *testing.T) {
		server := newPeer(t, func(_ int64, _ *http.Request, conn net.Conn) bool {
			_, _ = io.WriteString(conn, "220 mail ready\r\n")
			return false
		})
		_, err := post(t, operator(t, outbound.OperatorConfig{}), server.listener.Addr().String())
		_ = requireError(t, err, true)
	})
}

func TestOperatorTrustsTheExtraBundleAndUsesHTTP2(t *testing.T) {
	proto := make(chan string, 1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { proto <- r.Proto }))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	require.NoError(t, err)
	resp, err := operator(t, outbound.OperatorConfig{CAPEM: bundle}).Do(req)
	require.NoError(t, err)
	drain(t, resp)
	require.Equal(t, "HTTP/2.0", <-proto)

	_, err = outbound.Operator(outbound.OperatorConfig{CAPEM: []byte("no certificate")})
	require.Error(t, err)
}

func TestOperatorFollowsNoRedirectAndNoProxy(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	var hits atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hits.Add(1)
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	}))
	t.Cleanup(server.Close)
	resp, err := post(t, operator(t, outbound.OperatorConfig{}), strings.TrimPrefix(server.URL, "http://"))
	require.NoError(t, err)
	drain(t, resp)
	require.Equal(t, http.StatusTemporaryRedirect, resp.StatusCode)
	require.EqualValues(t, 1, hits.Load())
}

func TestUnreadableRedirectIsNotQuoted(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "http://%zz/"+canary)
		w.WriteHeader(http.StatusFound)
	}))
	t.Cleanup(server.Close)
	_, err := post(t, operator(t, outbound.OperatorConfig{}), strings.TrimPrefix(server.URL, "http://"))
	_ = requireError(t, err, true)
	require.ErrorIs(t, err, outbound.ErrRedirect)
}

func TestHTTP2StreamResetCountsAsWritten(t *testing.T) {
	var hits atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		hits.Add(1)
		panic(http.ErrAbortHandler)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/send", strings.NewReader("body"))
	require.NoError(t, err)
	_, err = operator(t, outbound.OperatorConfig{CAPEM: bundle}).Do(req)
	_ = requireError(t, err, true)
	require.EqualValues(t, 1, hits.Load())
}
