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

// Resolver resolves a host to addresses. *net.Resolver implements it.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// GuardedConfig configures [Guarded]. The zero value is usable.
type GuardedConfig struct {
	// Allow lists networks that are allowed, at any port, although they are not public.
	Allow []netip.Prefix
	// Timeout bounds a whole fetch, with redirects and body; default 30 s.
	Timeout time.Duration
	// MaxBytes bounds every decompressed body; default 64 MiB.
	MaxBytes int64
	// TLS is for requests with a secret: only networks in Allow may be reached without it.
	TLS bool
	// Strict is for addresses to which posts are sent: as TLS, and redirects are not followed.
	Strict bool
	// Resolver defaults to net.DefaultResolver.
	Resolver Resolver
}

// Guarded returns a client for addresses from payloads and feeds. It connects only to public addresses,
// at ports 80, 443, 8080 and 8443. It follows at most three redirects, checks each like the first
// address, and does not leave TLS. It sends no credential to another host. It accepts only gzip,
// inflated at most a hundred times, and never uses a proxy.
func Guarded(cfg GuardedConfig) *Client {
	g := &guard{allow: cfg.Allow, tls: cfg.TLS || cfg.Strict, resolver: cfg.Resolver}
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
		MaxIdleConnsPerHost:    maxIdleGuarded,
		MaxResponseHeaderBytes: maxHeaderBytes,
		DisableCompression:     true, // unzipped decompresses with a limit
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

// plain is the context key of a request without TLS.
type plain struct{}

// anywhere are the header fields that may be sent to another host: none of them can be a credential.
var anywhere = []string{"Accept", "Accept-Language", "If-Modified-Since", "If-None-Match", "Range", "User-Agent"}

// redirect bounds the redirects and removes headers that must not reach another host. net/http keeps
// credentials for subdomains and other ports, keeps custom headers for any host, and adds a Referer.
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

// guard decides at connect time on the dialled address, so that a second resolution cannot replace it.
type guard struct {
	allow    []netip.Prefix
	tls      bool
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
		return nil, fmt.Errorf("%w: %.40q is a number but not an address", ErrBlockedAddress, host)
	}
	addrs, err := g.resolver.LookupNetIP(ctx, "ip", host)
	if missing, ok := errors.AsType[*net.DNSError](err); ok && missing.IsNotFound {
		return nil, ErrNoPublicAddress
	}
	if err != nil {
		return nil, err
	}
	if len(addrs) == 0 {
		return nil, errors.New("the host has no address")
	}
	// One refused address refuses the host: a name that also resolves to a private address is an
	// attack.
	for _, addr := range addrs {
		err := g.check(ctx, netip.AddrPortFrom(addr, uint16(port)))
		if _, literal := netip.ParseAddr(host); literal != nil && errors.Is(err, ErrBlockedAddress) {
			return nil, ErrNoPublicAddress
		}
		if err != nil {
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

// disguised reports whether a host is an IPv4 address in another form than four decimal numbers: some
// resolvers accept 0x7f.1 or 2130706433. A DNS name never ends in a number.
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
	if !public(addr) {
		return fmt.Errorf("%w: %s", ErrBlockedAddress, addr)
	}
	if g.tls && ctx.Value(plain{}) != nil {
		return fmt.Errorf("%w: %s requires https", ErrBlockedScheme, addr)
	}
	if !slices.Contains([]uint16{80, 443, 8080, 8443}, target.Port()) {
		return fmt.Errorf("%w: %d", ErrBlockedPort, target.Port())
	}
	return nil
}
