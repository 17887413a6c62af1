package outbound

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	defaultFetchTimeout = 30 * time.Second
	defaultFetchBytes   = 64 << 20
	maxRedirects        = 3
	fetchDialTimeout    = 5 * time.Second
)

// Resolver turns a host into addresses; *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// GuardedConfig configures [Guarded]. The zero value is usable.
type GuardedConfig struct {
	// Allow lists networks that may be fetched from, at any port, although they are not public.
	Allow []netip.Prefix
	// Timeout covers a fetch whole, redirects and body included; 30 s when zero.
	Timeout time.Duration
	// MaxBytes caps every body as it is read, that is after decompression; 64 MiB when zero.
	MaxBytes int64
	// Strict is for addresses to which posts are sent: without TLS it connects to Allow
	// alone, and a redirect is an answer like any other.
	Strict bool
	// Resolver is net.DefaultResolver when nil.
	Resolver Resolver
}

// Guarded makes the client for addresses that came with a payload or a feed. It
// connects to public addresses at the ports 80, 443, 8080 and 8443 only, follows at
// most three redirects, each checked as the first address was and none of them out of
// TLS, carries no credential to another host, takes no encoding but gzip, inflated at
// most a hundred times, and never uses a proxy.
func Guarded(cfg GuardedConfig) *Client {
	g := &guard{allow: cfg.Allow, strict: cfg.Strict, resolver: cfg.Resolver}
	if g.resolver == nil {
		g.resolver = net.DefaultResolver
	}
	g.dialer = net.Dialer{Timeout: fetchDialTimeout, KeepAlive: dialKeepAlive, ControlContext: g.control}
	transport := &http.Transport{
		DialContext:            counting(g.dial),
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    handshakeTimeout,
		ForceAttemptHTTP2:      true,
		IdleConnTimeout:        idleTimeout,
		MaxIdleConns:           maxIdlePerHost,
		MaxResponseHeaderBytes: maxHeaderBytes,
		DisableCompression:     true, // unzipped does it, within bounds
	}
	follow := redirect
	if cfg.Strict {
		follow = noRedirect
	}
	return &Client{http: &http.Client{
		Transport:     &checked{next: &unzipped{transport}, maxBytes: cmp.Or(cfg.MaxBytes, defaultFetchBytes)},
		CheckRedirect: follow,
		Timeout:       cmp.Or(cfg.Timeout, defaultFetchTimeout),
	}}
}

// plain is the key of a context whose request goes without TLS.
type plain struct{}

// anywhere are the header fields that may follow to another host: none of them can be a credential.
var anywhere = []string{"Accept", "Accept-Language", "If-Modified-Since", "If-None-Match", "Range", "User-Agent"}

// redirect bounds the hops and drops what must not reach another host. net/http
// keeps credentials for subdomains and for another port, those in fields of their
// own for any host, and names the page it came from.
func redirect(req *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return fmt.Errorf("%w: more than %d", ErrRedirect, maxRedirects)
	}
	if via[len(via)-1].URL.Scheme == "https" && req.URL.Scheme == "http" {
		return fmt.Errorf("%w: it leaves TLS", ErrRedirect)
	}
	first := via[0].URL
	if req.URL.Host != first.Host || req.URL.Scheme != first.Scheme {
		for name := range req.Header {
			if !slices.Contains(anywhere, name) {
				req.Header.Del(name)
			}
		}
		req.URL.User = nil
	}
	return nil
}

// guard decides at connect time, on the address that is dialled, so that no
// second resolution can slip another one in.
type guard struct {
	allow    []netip.Prefix
	strict   bool
	resolver Resolver
	dialer   net.Dialer
}

func (g *guard) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", ErrBlockedPort, portText)
	}
	if disguised(host) {
		return nil, fmt.Errorf("%w: %.40q is a number and no address", ErrBlockedAddress, host)
	}
	addrs, err := g.resolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	if len(addrs) == 0 {
		return nil, errors.New("the name has no address")
	}
	// One refused address refuses all: a name that also points inside is an attempt to get there.
	for _, addr := range addrs {
		if err := g.check(ctx, netip.AddrPortFrom(addr, uint16(port))); err != nil {
			return nil, err
		}
	}
	var failed error
	for _, addr := range addrs {
		conn, err := g.dialer.DialContext(ctx, network, netip.AddrPortFrom(addr.Unmap(), uint16(port)).String())
		if err == nil {
			return conn, nil
		}
		failed = errors.Join(failed, err)
	}
	return nil, failed
}

// disguised reports whether a host is an IPv4 address written otherwise than as four
// decimal numbers: some resolvers read 0x7f.1 or 2130706433. No name ends in a number.
func disguised(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return false
	}
	host = strings.TrimRight(host, ".")
	last := strings.ToLower(host[strings.LastIndexByte(host, '.')+1:])
	digits, set := last, "0123456789"
	if hexadecimal, ok := strings.CutPrefix(last, "0x"); ok {
		digits, set = hexadecimal, "0123456789abcdef"
	}
	return last != "" && strings.Trim(digits, set) == ""
}

func (g *guard) control(ctx context.Context, _, address string, _ syscall.RawConn) error {
	target, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %s", ErrBlockedAddress, address)
	}
	return g.check(ctx, target)
}

func (g *guard) check(ctx context.Context, target netip.AddrPort) error {
	addr := target.Addr().Unmap()
	for _, prefix := range g.allow {
		if prefix.Contains(addr.WithZone("")) {
			return nil
		}
	}
	if g.strict && ctx.Value(plain{}) != nil {
		return fmt.Errorf("%w: %s is to be reached by https", ErrBlockedScheme, addr)
	}
	if !public(addr) {
		return fmt.Errorf("%w: %s", ErrBlockedAddress, addr)
	}
	if !slices.Contains([]uint16{80, 443, 8080, 8443}, target.Port()) {
		return fmt.Errorf("%w: %d", ErrBlockedPort, target.Port())
	}
	return nil
}
