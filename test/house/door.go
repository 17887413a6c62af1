package house

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"

	"github.com/stretchr/testify/require"
)

// Door is the public address of an installation: it is known before any daemon
// runs, and leads to the one that it was opened for.
type Door struct {
	// URL is for AUTOPOST_PUBLIC_URL.
	URL string

	h  *House
	to atomic.Pointer[url.URL]
}

// Door makes an address that leads nowhere yet: 502.
func (h *House) Door() *Door {
	d := &Door{h: h}
	server := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			if to := d.to.Load(); to != nil {
				r.SetURL(to)
			}
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	})
	h.t.Cleanup(server.Close)
	d.URL = server.URL
	return d
}

// Open leads to a daemon from now on.
func (d *Door) Open(to *Daemon) {
	d.h.t.Helper()
	address, err := url.Parse(to.URL)
	require.NoError(d.h.t, err)
	d.to.Store(address)
}

// Shut leads nowhere from now on.
func (d *Door) Shut() { d.to.Store(nil) }
