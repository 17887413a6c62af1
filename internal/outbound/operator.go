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
	// dialTimeout makes a host that does not answer a definite failure long before the deadline of the call.
	dialTimeout      = 10 * time.Second
	handshakeTimeout = 10 * time.Second
	// idleTimeout is shorter than what servers commonly grant: a request written to a
	// connection that the server has just closed has an unknown outcome.
	idleTimeout     = 20 * time.Second
	maxHeaderBytes  = 64 << 10
	maxIdlePerHost  = 256
	dialKeepAlive   = 30 * time.Second
	maxIdleOperator = 512
)

// OperatorConfig configures [Operator]. The zero value is usable.
type OperatorConfig struct {
	// CAPEM is a PEM bundle of authorities trusted by this client besides the system's.
	CAPEM []byte
}

// Operator makes the client for addresses set by the operator: they are used as
// given. No proxy from the environment, no redirect followed, TLS verified. How long a call may
// take is the context's affair; connecting and the handshake have 10 s each.
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

// trusted is nil, the system's pool, without a bundle.
func trusted(bundle []byte) (*x509.CertPool, error) {
	if len(bundle) == 0 {
		return nil, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		return nil, fmt.Errorf("read the system's certificate authorities: %w", err)
	}
	if !pool.AppendCertsFromPEM(bundle) {
		return nil, errors.New("the CA bundle holds no certificate in PEM form")
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
