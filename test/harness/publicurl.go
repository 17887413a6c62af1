package harness

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"

	"github.com/stretchr/testify/require"
)

// PublicAddress is the public address of an installation. It exists before any daemon runs and
// forwards requests to one daemon at a time.
type PublicAddress struct {
	// URL is the value of AUTOPOST_PUBLIC_URL.
	URL string

	h  *Harness
	to atomic.Pointer[url.URL]
}

// PublicAddress opens an address. It answers 502 until Forward.
func (h *Harness) PublicAddress() *PublicAddress {
	a := &PublicAddress{h: h}
	server := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			if to := a.to.Load(); to != nil {
				r.SetURL(to)
			}
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	})
	h.t.Cleanup(server.Close)
	a.URL = server.URL
	return a
}

// Forward sends all further requests to the daemon.
func (a *PublicAddress) Forward(to *Daemon) {
	a.h.t.Helper()
	address, err := url.Parse(to.URL)
	require.NoError(a.h.t, err)
	a.to.Store(address)
}

// Close answers all further requests with 502.
func (a *PublicAddress) Close() { a.to.Store(nil) }
