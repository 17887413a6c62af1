package outbound

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/url"

	"autopost/internal/failpoint"
)

// The errors below can be tested with errors.Is.
var (
	// ErrBlockedAddress: an address of the host is not public.
	ErrBlockedAddress = errors.New("address is not allowed")
	// ErrNoPublicAddress: the name does not exist, or an address of it is not public. The two are one error, because
	// their difference would show which names exist in the network of the operator. It is an ErrBlockedAddress.
	ErrNoPublicAddress = fmt.Errorf("the host has no public address: %w", ErrBlockedAddress)
	// ErrBlockedPort: the port is not 80, 443, 8080 or 8443.
	ErrBlockedPort = errors.New("port is not allowed")
	// ErrBlockedScheme: the scheme is not http or https, or it is http where TLS is required.
	ErrBlockedScheme = errors.New("scheme is not allowed")
	// ErrRedirect: the fourth redirect, an unreadable one, or one that leaves TLS.
	ErrRedirect = errors.New("redirect is not followed")
	// ErrTooLarge: the body is longer than its limit. A body is never truncated silently.
	ErrTooLarge = errors.New("body is too large")
	// ErrEncoding: the body's encoding is not a single gzip.
	ErrEncoding = errors.New("content encoding is not accepted")
	// ErrUntrusted: the server's certificate could not be verified.
	ErrUntrusted = errors.New("certificate is not trusted")
)

// Error is a request without an answer.
type Error struct {
	// Host is the host of the first request, without port and user information.
	Host string
	// Written: at least one byte of the request was sent, or may have been sent. Its effect is then
	// unknown.
	Written bool
	err     error
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("call %s: %s", e.Host, Cause(e.err)) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.err }

// Client makes requests. It is safe for concurrent use.
type Client struct{ http *http.Client }

// Do makes one request. It sends a method other than GET and HEAD at most once. net/http repeats a
// request automatically if a reused connection turns out to be closed: one with a body only if it can
// rewind the body and nothing was written; one that was written only if the method is idempotent.
// Without GetBody neither applies. Errors are of type *Error.
func (c *Client) Do(req *http.Request) (*http.Response, error) {
	var sent watch
	ctx := httptrace.WithClientTrace(req.Context(), sent.trace())
	req = req.WithContext(ctx)
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		req.GetBody = nil
	}
	if _, named := req.Header["User-Agent"]; !named {
		req.Header = req.Header.Clone()
		if req.Header == nil {
			req.Header = http.Header{}
		}
		req.Header.Set("User-Agent", userAgent)
	}
	if err := checkSend(req); err != nil {
		closeBody(req)
		return nil, &Error{Host: req.URL.Hostname(), err: err}
	}
	resp, err := c.http.Do(req)
	failpoint.Hit(failpoint.Accepted)
	if err != nil {
		return nil, &Error{Host: req.URL.Hostname(), Written: sent.written(), err: reason(err)}
	}
	return resp, nil
}

// CloseIdleConnections closes the idle connections.
func (c *Client) CloseIdleConnections() { c.http.CloseIdleConnections() }

// reason removes the URL from an error and marks an untrusted certificate.
func reason(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	if untrusted(err) {
		return fmt.Errorf("%w: %w", ErrUntrusted, err)
	}
	return err
}

// checked applies the rules for every request, also after a redirect.
type checked struct {
	next http.RoundTripper
	// maxBytes bounds the decompressed body; 0 means no limit.
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
	// net/http quotes an invalid Location in its error.
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
