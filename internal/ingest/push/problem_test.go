package push_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/ingest/push"
	"autopost/internal/problem"
)

// refusal is a refused request and its answer.
type refusal struct {
	name   string
	ask    func(*testing.T, *signedStore) *httptest.ResponseRecorder
	status int
	slug   string
	detail string
}

func bearer(body string, change ...func(*http.Request)) func(*testing.T, *signedStore) *httptest.ResponseRecorder {
	return func(_ *testing.T, s *signedStore) *httptest.ResponseRecorder { return post(s.store, body, change...) }
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func guarded(verdict push.Verdict) func(*testing.T, *signedStore) *httptest.ResponseRecorder {
	return func(_ *testing.T, s *signedStore) *httptest.ResponseRecorder {
		s.verdict = verdict
		return post(s.store, `{"text":"a"}`)
	}
}

// signedLate signs with the right key and a wrong clock, then changes headers.
func signedLate(by time.Duration, change ...func(*http.Request)) func(*testing.T, *signedStore) *httptest.ResponseRecorder {
	return func(t *testing.T, s *signedStore) *httptest.ResponseRecorder {
		const body = `{"text":"a"}`
		return sign(s, body, signedBy(t, signingKey, body, s.now.Add(-by)), change...)
	}
}

var refusals = []refusal{
	{"GET", bearer("", func(r *http.Request) { r.Method = http.MethodGet }), 405, "wrong-method", "must be POST, got GET"},
	{"no secret", bearer("{}", func(r *http.Request) { r.Header.Del("Authorization") }), 401, "unknown-secret", "Authorization: Bearer SECRET"},
	{"wrong secret", bearer("{}", header("Authorization", "Bearer other")), 401, "unknown-secret", "No enabled endpoint has this secret"},
	{"gzip", bearer("{}", header("Content-Encoding", "gzip")), 415, "wrong-encoding", `Content-Encoding is "gzip"`},
	{"XML", bearer("<a/>", header("Content-Type", "text/xml; charset=utf-8")), 415, "wrong-content-type", "sent as text/xml"},
	{"a form with files", bearer("--x", header("Content-Type", "multipart/form-data; boundary=x")), 415, "wrong-content-type", "sent as multipart/form-data"},
	{"another charset", bearer("{}", header("Content-Type", "application/json; charset=windows-1251")), 415, "wrong-content-type", "sent in windows-1251"},
	{"a form", bearer("text=a", header("Content-Type", "application/x-www-form-urlencoded")), 400, "not-json", "It was sent as a form"},
	{"not JSON", bearer(`{"text":"a"`), 400, "not-json", "at byte 11"},
	{"a body that ends early", func(_ *testing.T, s *signedStore) *httptest.ResponseRecorder {
		return post(s.store, "", func(r *http.Request) { r.Body = io.NopCloser(iotest.ErrReader(io.ErrUnexpectedEOF)) })
	}, 400, "body-cut", "before it was complete"},
	{"not UTF-8", bearer("{\"text\":\"\xff\"}"), 400, "not-json", "invalid UTF-8, at byte 9"},
	{"too large", bearer(strings.Repeat(" ", 4097)), 413, "too-large", "up to 4096 bytes"},
	{"a number", bearer("7"), 422, "wrong-body", "neither an object nor an array"},
	{"too many", bearer("[" + strings.Repeat("{},", 100) + "{}]"), 422, "wrong-body", "an array of 101 posts: send 1 to 100"},
	{"NUL", bearer(`{"text":"a\u0000"}`), 422, "wrong-post", "text contains the NUL character; remove the character."},
	{"wrong field", func(_ *testing.T, s *signedStore) *httptest.ResponseRecorder {
		s.statuses = []string{"rejected"}
		return post(s.store, `{"colour":"red"}`)
	}, 422, "wrong-post", "text nothing to send; send text, media or link."},
	{"all wrong", bearer(`[7,8]`), 422, "wrong-post", "None of the posts"},
	{"over its rate", guarded(push.Verdict{Reason: "rate", RetryAfter: 1200 * time.Millisecond}), 429, "over-rate", "again in 2 s"},
	{"the database is gone", func(_ *testing.T, s *signedStore) *httptest.ResponseRecorder {
		s.receiveErr, s.statuses = errGone, []string{"enqueued"}
		return post(s.store, `{"text":"a"}`)
	}, 503, "unavailable", "again in 5 s"},
	{"the database is full", func(_ *testing.T, s *signedStore) *httptest.ResponseRecorder {
		s.receiveErr, s.statuses = fmt.Errorf("receive: %w", autopost.ErrNoSpace), []string{"enqueued"}
		return post(s.store, `{"text":"a"}`)
	}, 507, "no-room", "no post was stored. The operator must free disk space"},

	{"no signature", signedLate(0, func(r *http.Request) { r.Header.Del("webhook-signature"); r.Header.Del("webhook-id") }), 401, "signature-missing", "no webhook-id, no webhook-signature"},
	{"a long id", signedLate(0, header("webhook-id", strings.Repeat("x", 257))), 401, "signature-malformed", "up to 256 bytes"},
	{"an instant in words", signedLate(0, header("webhook-timestamp", "2026-12-01T10:00:00Z")), 401, "signature-malformed", "seconds since 1970"},
	{"milliseconds", signedLate(0, header("webhook-timestamp", "1764583200000")), 401, "signature-malformed", "seconds since 1970"},
	{"not base64", signedLate(0, header("webhook-signature", "v1,not base64")), 401, "signature-malformed", "not the base64 of 32 bytes"},
	{"hexadecimal", signedLate(0, header("webhook-signature", "v1,"+strings.Repeat("ab", 32))), 401, "signature-malformed", "not the base64 of 32 bytes"},
	{"without its version", signedLate(0, header("webhook-signature", "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")), 401, "signature-malformed", "no signature of version 1"},
	{"very many", signedLate(0, header("webhook-signature", strings.Repeat("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE= ", 17))), 401, "signature-malformed", "more than 16"},
	{"no match", signedLate(0, header("webhook-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")), 401, "signature-mismatch", "Sign the id, the timestamp and the raw body"},
	{"a slow clock", signedLate(7 * time.Minute), 401, "clock-skew", "420 s behind the clock here, and 300 s are allowed"},
	{"a fast clock", signedLate(-7 * time.Minute), 401, "clock-skew", "ahead of the clock here"},
}

// Every refusal has its own type, names the error and the remedy, and is in the documentation.
func TestRefusals(t *testing.T) {
	answered := map[string]bool{"wrong-secrets": true, "wrong-event": true} // answered in front of the handler, and for events
	for _, c := range refusals {
		answered[c.slug] = true
		t.Run(c.name, func(t *testing.T) {
			s := newSignedStore()
			s.now = s.now.Truncate(time.Second)
			w := c.ask(t, s)
			p := requireProblem(t, w, c.status)
			require.Equal(t, "urn:autopost:problem:"+c.slug, p["type"])
			require.Contains(t, p["detail"], c.detail)
			if c.status == 429 || c.status > 500 {
				require.NotEmpty(t, w.Header().Get("Retry-After"))
			}
		})
	}
	for _, k := range problem.Catalogue() {
		require.Equal(t, strings.HasPrefix(k.Where, "endpoints"), answered[k.Slug], k.Slug)
	}
}

// A generic content type is accepted.
func TestContentTypes(t *testing.T) {
	for _, given := range []string{
		"application/json", "Application/JSON; charset=UTF-8", "application/vnd.acme+json", "text/json", "text/plain", "application/octet-stream",
		"application/x-www-form-urlencoded", "",
	} {
		s := newStore()
		s.statuses = []string{"enqueued"}
		require.Equal(t, 202, post(s, `{"text":"a"}`, header("Content-Type", given)).Code, given)
	}
}
