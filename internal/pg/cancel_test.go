package pg_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/pg"
	"autopost/internal/testing/pgtest"
	"autopost/internal/testing/wait"
)

// lateCancels is a proxy to PostgreSQL that delivers cancel requests only after allow is closed.
type lateCancels struct {
	t        *testing.T
	server   string // path of its socket
	allow    chan struct{}
	asked    chan struct{}
	finished sync.WaitGroup
}

// openLateCancels returns a proxy and the URL of a database behind it.
func openLateCancels(t *testing.T, database string) (*lateCancels, string) {
	t.Helper()
	u, err := url.Parse(database)
	require.NoError(t, err)
	query := u.Query()
	socket := fmt.Sprintf("%s/.s.PGSQL.%s", query.Get("host"), query.Get("port"))
	p := &lateCancels{t: t, server: socket, allow: make(chan struct{}), asked: make(chan struct{}, 8)}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(p.finished.Wait)
	t.Cleanup(func() { _ = listener.Close() })
	p.finished.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			p.finished.Go(func() { p.serve(conn) })
		}
	})
	u.Host = listener.Addr().String()
	u.RawQuery = url.Values{"sslmode": {"disable"}}.Encode()
	return p, u.String()
}

// serve passes one connection on. The first packet of a cancel request has a code of its own.
func (p *lateCancels) serve(client net.Conn) {
	defer func() { _ = client.Close() }()
	const cancelCode = 80877102
	head := make([]byte, 8)
	if _, err := io.ReadFull(client, head); err != nil {
		return
	}
	server, err := new(net.Dialer).DialContext(p.t.Context(), "unix", p.server)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	if binary.BigEndian.Uint32(head[4:]) == cancelCode {
		whole := make([]byte, binary.BigEndian.Uint32(head))
		copy(whole, head)
		if _, err := io.ReadFull(client, whole[len(head):]); err != nil {
			return
		}
		head = whole
		p.asked <- struct{}{}
		<-p.allow
	}
	if _, err := server.Write(head); err != nil {
		return
	}
	p.finished.Go(func() {
		_, _ = io.Copy(server, client) // ends with the connection
		_ = server.Close()
	})
	_, _ = io.Copy(client, server) // ends with the connection
	if binary.BigEndian.Uint32(head[4:]) == cancelCode {
		p.asked <- struct{}{} // the server has closed the connection: it has sent the signal
	}
}

// A cancel request that arrives late does not end a later statement of another caller.
func TestALateCancelEndsNoOtherStatement(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	db.Exec(`alter function autopost.functions_digest() rename to digest_behind_gate;
		create function autopost.functions_digest() returns text language plpgsql security definer set search_path = autopost, pg_temp as $$
		begin
			perform pg_advisory_xact_lock_shared(7);
			return autopost.digest_behind_gate();
		end $$;
		grant execute on function autopost.functions_digest() to autopost_engine`)
	proxy, address := openLateCancels(t, db.URL("engine"))
	store, err := pg.Open(t.Context(), pg.Options{URL: address, MaxConns: 1})
	require.NoError(t, err)
	t.Cleanup(store.Close)
	require.NoError(t, store.Ready(t.Context()))
	gate := db.Session("gate", "")
	waiting := func() bool {
		return pgtest.Value[bool](db, `select exists (select 1 from pg_locks where locktype = 'advisory' and objid = 7 and not granted)`)
	}

	gate.Exec(`select pg_advisory_lock(7)`)
	first, leave := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- store.Ready(first) }()
	wait.Until(t, "the first statement waits", waiting)
	leave()
	require.True(t, wait.Closed(proxy.asked), "the cancel request is on its way")
	gate.Exec(`select pg_advisory_unlock(7)`)
	require.NoError(t, <-ended, "the first statement ends before its cancel request arrives")

	gate.Exec(`select pg_advisory_lock(7)`)
	go func() { ended <- store.Ready(t.Context()) }()
	wait.Until(t, "the second statement waits", waiting)
	close(proxy.allow)
	require.True(t, wait.Closed(proxy.asked), "the server has taken the cancel request")
	gate.Exec(`select pg_advisory_unlock(7)`)
	require.NoError(t, <-ended)
}
