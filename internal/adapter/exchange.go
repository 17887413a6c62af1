package adapter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"autopost"
	"autopost/internal/outbound"
)

// maxAnswer bounds the body of an answer that is read, in bytes. Answers about a post have a few
// kilobytes.
const maxAnswer = 1 << 20

// maxKeptBody and maxKeptHeaders bound the parts of an answer in its raw payload, in bytes: a payload has at most 64 kB.
const (
	maxKeptBody    = 54 << 10
	maxKeptHeaders = 6 << 10
)

// Codes of failures on our side.
const (
	// CodeNotStarted: the call was cancelled, or its deadline passed, before its first byte.
	CodeNotStarted = "not_started"
	// CodeNotRecorded: the database did not record a step that makes no message.
	CodeNotRecorded = "not_recorded"
	// CodeOriginUnavailable: the media store did not answer; it may answer later.
	CodeOriginUnavailable = "media_origin_unavailable"
	// CodeTargetRefused: connections to the channel's address are not allowed.
	CodeTargetRefused = "target_refused"
)

// Doer makes one request. Failures are *outbound.Error. *outbound.Client implements it.
type Doer interface {
	Do(req *http.Request) (*http.Response, error)
}

// Answer is an answer with its body.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// RetryAfterMS is the wait that the platform requests, in milliseconds, at most a year; 0 if none.
func (a Answer) RetryAfterMS() int64 { return outbound.RetryAfter(a.Header).Milliseconds() }

// Base parses the base URL of a platform's API. The error does not contain the address, because it may
// contain a key.
func Base(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, errors.New("must be an http or https address")
	}
	return u, nil
}

// Exchange makes one request and reads its answer. If the body of a 4xx answer cannot be read, the
// status counts alone. Any other incomplete answer leaves the outcome unknown. An incomplete body is
// dropped, because it may end within a secret.
func Exchange(client Doer, req *http.Request, hide Redactor) (Answer, *autopost.Error) {
	outbound.KeepAnswer(req.Context(), nil)
	resp, err := client.Do(req)
	if err != nil {
		return Answer{}, transportError(err, hide)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := outbound.ReadAll(resp.Body, maxAnswer)
	if err != nil {
		body = nil
	}
	answer := Answer{Status: resp.StatusCode, Header: resp.Header, Body: body}
	outbound.KeepAnswer(req.Context(), func() json.RawMessage { return answer.whole(hide) })
	definite := resp.StatusCode >= 400 && resp.StatusCode < 500
	if err != nil && !definite {
		return Answer{}, Unknown(hide.Text(fmt.Sprintf("status %d, then: %v", resp.StatusCode, err)))
	}
	return answer, nil
}

// whole returns the answer as JSON without the secret, for its raw payload. A cookie is a secret too.
func (a Answer) whole(hide Redactor) json.RawMessage {
	header := a.Header.Clone()
	header.Del("Set-Cookie")
	return encode(map[string]any{"status": a.Status, "headers": hide.Whole(encode(header), maxKeptHeaders), "body": hide.Whole(a.Body, maxKeptBody)})
}

// Unknown returns the failure of a call whose outcome is unknown.
func Unknown(message string) *autopost.Error {
	return &autopost.Error{
		Category: autopost.Transient, Scope: autopost.ScopeDelivery,
		Code: autopost.CodeUnknownOutcome, Message: message,
	}
}

// Refusal returns a definite failure, found on our side or stated by the platform.
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
	case errors.Is(err, outbound.ErrNoPublicAddress): // the name may exist again later
		return Refusal(autopost.Transient, autopost.ScopeChannel, CodeTargetRefused, message)
	case errors.Is(err, outbound.ErrBlockedAddress), errors.Is(err, outbound.ErrBlockedPort), errors.Is(err, outbound.ErrBlockedScheme):
		return Refusal(autopost.Permanent, autopost.ScopeChannel, CodeTargetRefused, message)
	case errors.Is(err, context.Canceled):
		return Refusal(autopost.Transient, autopost.ScopeDelivery, CodeNotStarted, message)
	default:
		return Refusal(autopost.Transient, autopost.ScopePlatform, autopost.CodeNetConnect, message)
	}
}
