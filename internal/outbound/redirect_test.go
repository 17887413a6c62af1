package outbound

import (
	"net/http"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRedirectDoesNotLeaveTLS(t *testing.T) {
	to := func(address string) *http.Request {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
		require.NoError(t, err)
		return req
	}
	require.ErrorIs(t, redirect(to("http://a/"), []*http.Request{to("https://a/")}), ErrRedirect)
	require.ErrorIs(t, redirect(to("http://b/"), []*http.Request{to("http://a/"), to("https://a/")}), ErrRedirect)
	require.NoError(t, redirect(to("https://b/"), []*http.Request{to("https://a/")}))
	require.NoError(t, redirect(to("https://b/"), []*http.Request{to("http://a/")}))
}

// public accepts no address that the standard library classifies as private, also if an IPv4 address is
// embedded in an IPv6 one.
func FuzzPublic(f *testing.F) {
	for _, seed := range []string{"127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "93.184.215.14", "2606:2800:21f:cb07::1"} {
		f.Add(netip.MustParseAddr(seed).AsSlice())
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		addr, ok := netip.AddrFromSlice(raw)
		if !ok || !public(addr.Unmap()) {
			return
		}
		addr = addr.Unmap()
		if !addr.IsGlobalUnicast() || addr.IsPrivate() || addr.IsLoopback() || addr.IsLinkLocalUnicast() || addr.IsMulticast() || addr.IsUnspecified() {
			t.Errorf("%s is accepted as public", addr)
		}
		if bytes := addr.As16(); addr.Is6() && (bytes[0] == 0x20 && bytes[1] == 0x02 || bytes[0] == 0 && bytes[1] == 0x64) {
			t.Errorf("%s embeds an IPv4 address and is accepted as public", addr)
		}
	})
}
