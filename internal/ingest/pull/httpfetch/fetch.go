// Package httpfetch holds what sources over HTTP share: requests, the classification of refusals and broken connections,
// hints about the next poll, and limits of memory.
package httpfetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"autopost/internal/ingest/pull"
	"autopost/internal/outbound"
)

const (
	// MaxBody is the largest document after decompression, in bytes.
	MaxBody = 8 << 20
)

// Doer makes a request to an address of a source. outbound.Guarded implements it and checks the address.
type Doer interface {
	Do(*http.Request) (*http.Response, error)
}

// Get requests address with these headers.
func Get(ctx context.Context, doer Doer, address *url.URL, header http.Header) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return nil, &pull.Failure{Code: "pull_config", Message: "url must be an absolute http or https URL"}
	}
	request.Header = header
	response, err := doer.Do(request)
	if err != nil {
		return nil, Unreachable(ctx, address, err)
	}
	return response, nil
}

// Address returns the address of the answer after redirects.
func Address(response *http.Response, asked *url.URL) *url.URL {
	if response.Request == nil || response.Request.URL == nil {
		return asked
	}
	return response.Request.URL
}

// Moved returns the target of permanent redirects. It returns "" without a redirect, after a temporary one, or after one
// from https to http.
func Moved(response *http.Response) string {
	to := response.Request
	if to == nil || to.Response == nil {
		return ""
	}
	for hop := to; hop.Response != nil; hop = hop.Response.Request {
		status := hop.Response.StatusCode
		if status != http.StatusMovedPermanently && status != http.StatusPermanentRedirect || hop.Response.Request == nil {
			return ""
		}
		if hop.Response.Request.URL.Scheme == "https" && hop.URL.Scheme != "https" {
			return ""
		}
	}
	return to.URL.String()
}

// Refusal classifies an answer other than 200.
func Refusal(asked *url.URL, response *http.Response) *pull.Failure {
	status := response.StatusCode
	failure := &pull.Failure{Code: fmt.Sprintf("pull_http_%d", status), Message: fmt.Sprintf("%s answered %d", asked.Hostname(), status)}
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		failure.Message += "; check auth_ref, or ask for access"
	case http.StatusNotFound:
		failure.Message += "; correct url or disable the source"
	case http.StatusGone:
		failure.Message += ": the content is permanently gone, and the source is disabled; correct url and enable the source"
		failure.Gone = true
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		failure.RetryAfter = retryAfter(response.Header, time.Now())
		if status == http.StatusTooManyRequests {
			failure.Message += "; raise interval_seconds"
		}
	}
	return failure
}

// Unreachable classifies a missing answer. Its message never contains the URL, which may contain a key.
func Unreachable(ctx context.Context, asked *url.URL, err error) *pull.Failure {
	host := asked.Hostname()
	var network net.Error
	switch {
	case errors.Is(err, outbound.ErrBlockedScheme):
		return &pull.Failure{Code: "pull_blocked_address", Message: "url must be https, because a credential is sent to " + host}
	case errors.Is(err, outbound.ErrBlockedAddress), errors.Is(err, outbound.ErrBlockedPort):
		return &pull.Failure{Code: "pull_blocked_address", Message: fmt.Sprintf("%s must exist, and have a public address and port; "+
			"correct it, or add an exception to AUTOPOST_OUTBOUND_ALLOW", host)}
	case errors.Is(err, outbound.ErrTooLarge):
		return &pull.Failure{Code: "pull_too_large", Message: fmt.Sprintf("the answer of %s is larger than %d bytes", host, MaxBody)}
	case ctx.Err() != nil, errors.As(err, &network) && network.Timeout():
		return &pull.Failure{Code: "pull_timeout", Message: host + " did not answer in time"}
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return &pull.Failure{Code: "pull_fetch_failed", Message: host + " closed the connection during the answer"}
	}
	return &pull.Failure{Code: "pull_fetch_failed", Message: fmt.Sprintf("fetch from %s: %s", host, outbound.Cause(err))}
}
