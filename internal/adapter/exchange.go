package adapter

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"autopost"
	"autopost/internal/outbound"
)

// maxAnswer caps what is read of an answer, in bytes. Answers about a post are a few kilobytes.
const maxAnswer = 1 << 20

// Codes of failures on our own side of the line.
const (
	// CodeNotStarted: the call was cancelled or out of time before its first byte.
	CodeNotStarted = "not_started"
	// CodeNotRecorded: the database did not take what a step came to, which made no message.
	CodeNotRecorded = "not_recorded"
	// CodeOriginUnavailable: the media origin or cache did not answer; it may later.
	CodeOriginUnavailable = "media_origin_unavailable"
	// CodeTargetRefused: we do not connect to the address that the channel names.
	CodeTargetRefused = "target_refused"
)

// Doer makes one request and reports failures as *outbound.Error. *outbound.Client is one.
type Doer interface {
	Do(req *http.Request) (*http.Response, error)
}

// Answer is what a platform said, whole as far as it matters.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// RetryAfterMS is the wait that the platform asked for, in milliseconds, at most a year; 0 = none.
func (a Answer) RetryAfterMS() int64 { return outbound.RetryAfter(a.Header).Milliseconds() }

// Base is the address below which a platform's paths begin. The error never repeats
// it: there may be a key in it.
func Base(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, errors.New("it is not an http or https address")
	}
	return u, nil
}

// Exchange makes one request and reads its answer. An answer of class 4xx counts by
// its status alone; any other that cannot be read whole leaves the outcome unknown.
// Nothing is kept of a body that broke off: it may end within a secret.
func Exchange(client Doer, req *http.Request, hide Redactor) (Answer, *autopost.Error) {
	resp, err := client.Do(req)
	if err != nil {
		return Answer{}, transportError(err, hide)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := outbound.ReadAll(resp.Body, maxAnswer)
	definite := resp.StatusCode >= 400 && resp.StatusCode < 500
	if err != nil && !definite {
		return Answer{}, Unknown(hide.Text(fmt.Sprintf("status %d, then: %v", resp.StatusCode, err)))
	}
	if err != nil {
		body = nil
	}
	return Answer{Status: resp.StatusCode, Header: resp.Header, Body: body}, nil
}

// Unknown is the failure after which nobody knows whether the platform has the post.
func Unknown(message string) *autopost.Error {
	return &autopost.Error{
		Category: autopost.Transient, Scope: autopost.ScopeDelivery,
		Code: autopost.CodeUnknownOutcome, Message: message,
	}
}

// Refusal is a definite failure found on our side or stated by the platform.
func Refusal(category autopost.Category, scope autopost.Scope, code, message string) *autopost.Error {
	return &autopost.Error{Category: category, Scope: scope, Code: code, Known: true, Message: message}
}

func transportError(err error, hide Redactor) *autopost.Error {
	message := hide.Text(err.Error())
	failure, ok := errors.AsType[*outbound.Error](err)
	switch {
	case !ok || failure.Written:
		return Unknown(message)
	case errors.Is(err, outbound.ErrUntrusted):
		return Refusal(autopost.Permanent, autopost.ScopePlatform, autopost.CodeTLSUntrusted, message)
	case errors.Is(err, errContent):
		return contentError(err, hide)
	case errors.Is(err, outbound.ErrBlockedAddress), errors.Is(err, outbound.ErrBlockedPort), errors.Is(err, outbound.ErrBlockedScheme):
		return Refusal(autopost.Permanent, autopost.ScopeChannel, CodeTargetRefused, message)
	case errors.Is(err, context.Canceled):
		return Refusal(autopost.Transient, autopost.ScopeDelivery, CodeNotStarted, message)
	default:
		return Refusal(autopost.Transient, autopost.ScopePlatform, autopost.CodeNetConnect, message)
	}
}
