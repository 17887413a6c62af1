// Package port finds free addresses for programs that a test starts.
package port

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// The range is below the ports that the kernel assigns, so no other socket takes one by chance.
const (
	first = 20_000
	count = 12_000
)

// Free returns an address on loopback, host and port, on which nothing listens.
func Free(t testing.TB) string {
	t.Helper()
	for range 100 {
		listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", first+rand.IntN(count)))
		if err != nil {
			continue // in use
		}
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
		return listener.Addr().String()
	}
	t.Fatal("no free port")
	return ""
}
