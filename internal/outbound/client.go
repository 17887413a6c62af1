package outbound

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/url"

	"autopost/internal/crash"
)

// Errors that a caller tells apart with errors.Is.
var (
	// ErrBlockedAddress refuses a host one of whose addresses is not public.
	ErrBlockedAddress = errors.New("address is not allowed")
	// ErrBlockedPort refuses a port outside 80, 443, 8080 and 8443.
	ErrBlockedPort = errors.New("port is not allowed")
	// ErrBlockedScheme refuses anything but http and https, and http where it takes TLS.
	ErrBlockedScheme = errors.New("scheme is not allowed")
	// ErrRedirect stops at the fourth redirect, at one that cannot be read and at one that leaves TLS.
	ErrRedirect = errors.New("redirect is not followed")
	// ErrTooLarge says that a body is longer than its cap. Nothing is truncated silently.
	ErrTooLarge = errors.New("body is too large")
	// ErrEncoding refuses a body that is packed otherwise than once by gzip.
	ErrEncoding = errors.New("content encoding is not taken")
	// ErrUntrusted says that the server's certificate could not be verified.
	ErrUntrusted = errors.New("certificate is not trusted")
)

// Error is a request that brought no answer.
type Error struct {
	// Host is the host asked first, without port and user information.
	Host string
	// Written says that at least one byte of the request left, or may have left:
	// what the server made of it is then unknown.
	Written bool
	err     error
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("call %s: %v", e.Host, e.err) }

// Unwrap gives the reason.
func (e *Error) Unwrap() error { return e.err }

// Client makes requests. It is safe for concurrent use.
type Client struct{ http *http.Client }

// Do makes one request. A method other than GET and HEAD is sent at most once:
// net/http repeats a request on its own when a reused connection turns out dead,
// but one with a body only if it can rewind it and nothing had been written, and one
// that had been written only if the method is idempotent. Without GetBody neither
// applies. Errors are of type *Error.
func (c *Client) Do(req *http.Request) (*http.Response, error) {
	var sent watch
	ctx := httptrace.WithClientTrace(req.Context(), sent.trace())
	req = req.WithContext(ctx)
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		req.GetBody = nil
	}
	if err := fenced(req); err != nil {
		closeBody(req)
		return nil, &Error{Host: req.URL.Hostname(), err: err}
	}
	resp, err := c.http.Do(req)
	crash.Here(crash.Accepted)
	if err != nil {
		return nil, &Error{Host: req.URL.Hostname(), Written: sent.written(), err: reason(err)}
	}
	return resp, nil
}

// CloseIdleConnections closes the connections that wait for the next request.
func (c *Client) CloseIdleConnections() { c.http.CloseIdleConnections() }

// reason takes the URL off an error and marks an untrusted certificate.
func reason(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	if untrusted(err) {
		return fmt.Errorf("%w: %w", ErrUntrusted, err)
	}
	return err
}

// checked wraps a transport with what must hold for every request, also after a redirect.
type checked struct {
	next http.RoundTripper
	// maxBytes caps the body as the caller reads it, that is decompressed; 0 = no cap.
	maxBytes int64
}

func (c *checked) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != "http" && req.URL.Scheme != "https" {
		closeBody(req)
		return nil, ErrBlockedScheme
	}
	if req.URL.Scheme == "http" {
		req = req.WithContext(context.WithValue(req.Context(), plain{}, true))
	}
	resp, err := c.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	// net/http quotes a Location that it cannot parse in its error.
	if _, err := req.URL.Parse(resp.Header.Get("Location")); err != nil {
		_ = resp.Body.Close()
		return nil, fmt.Errorf("%w: its address cannot be read", ErrRedirect)
	}
	if c.maxBytes > 0 {
		if resp.ContentLength > c.maxBytes {
			_ = resp.Body.Close()
			return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, resp.ContentLength, c.maxBytes)
		}
		resp.Body = Limit(resp.Body, c.maxBytes)
	}
	return resp, nil
}

// CloseIdleConnections passes the call on to the transport.
func (c *checked) CloseIdleConnections() {
	if t, ok := c.next.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}
