// Package web is what sources that are asked over HTTP share: requests, what
// refusals and broken connections mean, hints about when to come again, and how
// much is read at once.
package web

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
	// MaxBody bounds a document as it is read, that is decompressed, in bytes.
	MaxBody   = 8 << 20
	userAgent = "autopost"
)

// Doer makes a request to an address that a source names; outbound.Guarded
// provides it, with its checks of where the request goes.
type Doer interface {
	Do(*http.Request) (*http.Response, error)
}

// Get asks address with these header fields.
func Get(ctx context.Context, doer Doer, address *url.URL, header http.Header) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return nil, &pull.Failure{Code: "pull_config", Message: "url must be a whole http or https URL"}
	}
	request.Header = header
	request.Header.Set("User-Agent", userAgent)
	response, err := doer.Do(request)
	if err != nil {
		return nil, Unreachable(ctx, address, err)
	}
	return response, nil
}

// Address is where the answer came from, behind redirects.
func Address(response *http.Response, asked *url.URL) *url.URL {
	if response.Request == nil || response.Request.URL == nil {
		return asked
	}
	return response.Request.URL
}

// Moved is where redirects led that all said they are for good; "" where there was
// none, one was for now, or one would give up encryption.
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

// Refusal is what an answer other than 200 means.
func Refusal(asked *url.URL, response *http.Response) *pull.Failure {
	status := response.StatusCode
	failure := &pull.Failure{Code: fmt.Sprintf("pull_http_%d", status), Message: fmt.Sprintf("%s answered %d", asked.Hostname(), status)}
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		failure.Message += "; it does not let us read: check auth_ref, or ask for access"
	case http.StatusNotFound:
		failure.Message += "; correct url or disable the source"
	case http.StatusGone:
		failure.Message += ": it is gone for good, and the source is stopped; correct url and enable it, or leave it"
		failure.Gone = true
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		failure.RetryAfter = retryAfter(response.Header, time.Now())
		if status == http.StatusTooManyRequests {
			failure.Message += "; raise interval_seconds"
		}
	}
	return failure
}

// Unreachable says why no body came. It never shows the URL, which may hold a key.
func Unreachable(ctx context.Context, asked *url.URL, err error) *pull.Failure {
	host := asked.Hostname()
	var network net.Error
	switch {
	case errors.Is(err, outbound.ErrBlockedAddress), errors.Is(err, outbound.ErrBlockedPort), errors.Is(err, outbound.ErrBlockedScheme):
		return &pull.Failure{Code: "pull_blocked_address", Message: fmt.Sprintf("%s may not be fetched from: "+
			"its address or port is not public; AUTOPOST_OUTBOUND_ALLOW lists exceptions", host)}
	case errors.Is(err, outbound.ErrTooLarge):
		return &pull.Failure{Code: "pull_too_large", Message: fmt.Sprintf("the answer of %s is larger than %d bytes", host, MaxBody)}
	case ctx.Err() != nil, errors.As(err, &network) && network.Timeout():
		return &pull.Failure{Code: "pull_timeout", Message: host + " did not deliver in time"}
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return &pull.Failure{Code: "pull_fetch_failed", Message: host + " broke off in the middle"}
	}
	return &pull.Failure{Code: "pull_fetch_failed", Message: fmt.Sprintf("fetch from %s: %v", host, err)}
}
