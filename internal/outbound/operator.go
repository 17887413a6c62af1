package outbound

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

const (
	// dialTimeout bounds connecting, so that a host that does not answer is a definite failure long
	// before the call's deadline.
	dialTimeout      = 10 * time.Second
	handshakeTimeout = 10 * time.Second
	// idleTimeout is shorter than common server timeouts: a request on a connection that the server has
	// just closed has an unknown outcome.
	idleTimeout     = 20 * time.Second
	maxHeaderBytes  = 64 << 10
	maxIdlePerHost  = 256
	maxIdleGuarded  = 32 // per host; many result webhooks may lead to one
	dialKeepAlive   = 30 * time.Second
	maxIdleOperator = 512
)

// OperatorConfig configures [Operator]. The zero value is usable.
type OperatorConfig struct {
	// CAPEM is a PEM bundle of additional trusted certificate authorities.
	CAPEM []byte
}

// Operator returns a client for addresses that the operator configured. It uses no proxy, follows no
// redirect and verifies TLS. The context bounds a call; connecting and the TLS handshake have 10 s
// each.
func Operator(cfg OperatorConfig) (*Client, error) {
	pool, err := trusted(cfg.CAPEM)
	if err != nil {
		return nil, err
	}
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: dialKeepAlive}
	transport := &http.Transport{
		DialContext:            counting(dialer.DialContext),
		TLSClientConfig:        &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    handshakeTimeout,
		ForceAttemptHTTP2:      true,
		IdleConnTimeout:        idleTimeout,
		MaxIdleConns:           maxIdleOperator,
		MaxIdleConnsPerHost:    maxIdlePerHost,
		MaxResponseHeaderBytes: maxHeaderBytes,
	}
	return &Client{http: &http.Client{
		Transport:     &checked{next: transport},
		CheckRedirect: noRedirect,
	}}, nil
}

func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// trusted returns the certificate pool, or nil (the system's pool) without a bundle.
func trusted(bundle []byte) (*x509.CertPool, error) {
	if len(bundle) == 0 {
		return nil, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		return nil, fmt.Errorf("read the system's certificate authorities: %w", err)
	}
	if !pool.AppendCertsFromPEM(bundle) {
		return nil, errors.New("the CA bundle contains no PEM certificate")
	}
	return pool, nil
}

func untrusted(err error) bool {
	_, ok := errors.AsType[*tls.CertificateVerificationError](err)
	return ok
}

type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

func counting(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &countedConn{Conn: conn}, nil
	}
}
