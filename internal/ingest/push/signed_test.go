package push_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/ingest/push"
)

const (
	signingKey  = "whsec_Y2FuYXJ5LXNpZ25pbmcta2V5LTE="
	previousKey = "whsec_Y2FuYXJ5LXNpZ25pbmcta2V5LTA="
)

// signedStore is a Store with the endpoint acme/site and a fake clock.
type signedStore struct {
	*store

	keys []string
	now  time.Time
	ids  []string
}

func newSignedStore() *signedStore {
	return &signedStore{store: newStore(), keys: []string{signingKey, previousKey}, now: time.Now()}
}

func (s *signedStore) ResolveSignedEndpoint(_ context.Context, signedAt time.Time, workspace, endpoint string) (*push.SignedEndpoint, error) {
	if s.resolveErr != nil {
		return nil, s.resolveErr
	}
	if workspace != "acme" || endpoint != "site" {
		return nil, nil
	}
	skew := s.now.Sub(signedAt)
	return &push.SignedEndpoint{
		Endpoint: push.Endpoint{WorkspaceID: workspace, EndpointID: endpoint, MaxPayloadBytes: s.max},
		AuthRefs: s.keys, Bound: make([]json.RawMessage, len(s.keys)), SkewSeconds: int64(skew.Seconds()), ToleranceSeconds: 300, Fresh: skew.Abs() <= 5*time.Minute,
	}, nil
}

// OpenBound returns the key that is its own name; the name "" cannot be opened.
func (s *signedStore) OpenBound(_, authRef string, _ json.RawMessage) (autopost.Secret, error) {
	if authRef == "" {
		return autopost.Secret{}, errGone
	}
	return autopost.NewSecret(authRef), nil
}

func (s *signedStore) ReceiveSignedPush(ctx context.Context, workspace, endpoint, webhookID string, items json.RawMessage) (json.RawMessage, error) {
	s.ids = append(s.ids, webhookID)
	return s.ReceivePush(ctx, workspace, endpoint, items)
}

func headers(id, timestamp, signature string) http.Header {
	h := http.Header{}
	h["Webhook-Id"], h["Webhook-Timestamp"], h["Webhook-Signature"] = []string{id}, []string{timestamp}, []string{signature}
	return h
}

// signedBy returns the headers of a signed body, made by the library of the specification.
func signedBy(t testing.TB, key, body string, at time.Time) map[string]string {
	t.Helper()
	library, err := standardwebhooks.NewWebhook(key)
	require.NoError(t, err)
	signature, err := library.Sign("msg-1", at, []byte(body))
	require.NoError(t, err)
	return map[string]string{"webhook-id": "msg-1", "webhook-timestamp": strconv.FormatInt(at.Unix(), 10), "webhook-signature": signature}
}

func sign(s *signedStore, body string, signed map[string]string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/hooks/push/acme/site", strings.NewReader(body))
	r.SetPathValue("workspace_id", "acme")
	r.SetPathValue("endpoint_id", "site")
	for name, value := range signed {
		r.Header[http.CanonicalHeaderKey(name)] = []string{value}
	}
	for _, f := range change {
		f(r)
	}
	w := httptest.NewRecorder()
	push.NewSigned(s, s, slog.New(slog.DiscardHandler)).ServeHTTP(w, r)
	return w
}

func TestSignedPush(t *testing.T) {
	const body = ` {"text":"hello"} `
	for name, key := range map[string]string{"the key": signingKey, "the previous key": previousKey} {
		t.Run(name, func(t *testing.T) {
			s := newSignedStore()
			s.statuses = []string{"enqueued"}
			require.Equal(t, 202, sign(s, body, signedBy(t, key, body, s.now)).Code)
			require.Equal(t, []string{"msg-1"}, s.ids)
			require.JSONEq(t, `[{"text":"hello"}]`, s.received[0])
			require.Equal(t, [][2]int{{len(body), 1}}, s.guarded)
		})
	}
	t.Run("one of several signatures", func(t *testing.T) {
		s := newSignedStore()
		s.statuses = []string{"duplicate"}
		signed := signedBy(t, signingKey, body, s.now)
		other := signedBy(t, "whsec_b3RoZXI=", body, s.now)["webhook-signature"]
		signed["webhook-signature"] = "v1a,c29tZXRoaW5n " + other + " " + signed["webhook-signature"]
		require.Equal(t, 200, sign(s, body, signed).Code)
	})
	t.Run("an invalid key does not affect the others", func(t *testing.T) {
		s := newSignedStore()
		s.keys, s.statuses = []string{"not a key", signingKey}, []string{"enqueued"}
		require.Equal(t, 202, sign(s, body, signedBy(t, signingKey, body, s.now)).Code)
		s.keys = s.keys[:1]
		requireProblem(t, sign(s, body, signedBy(t, signingKey, body, s.now)), 401)
	})
}

// The example of the specification's documentation.
func TestSignedPushAsPublished(t *testing.T) {
	const body = `{"test": 2432232314}`
	s := newSignedStore()
	s.keys, s.statuses, s.now = []string{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}, []string{"enqueued"}, time.Unix(1614265330, 0)
	w := sign(s, body, map[string]string{
		"webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp": "1614265330",
		"webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
	})
	require.Equal(t, 202, w.Code, w.Body.String())
}

// A request without a valid signature learns nothing about the endpoint.
func TestSignedPushWithoutAValidSignature(t *testing.T) {
	const body = `{"text":"a"}`
	bodies, codes := map[string]bool{}, map[int]bool{}
	for name, change := range map[string]func(*signedStore, *http.Request){
		"bad signature":     func(*signedStore, *http.Request) {},
		"unknown endpoint":  func(_ *signedStore, r *http.Request) { r.SetPathValue("endpoint_id", "nowhere") },
		"a missing key":     func(s *signedStore, _ *http.Request) { s.keys = []string{""} },
		"no key at all":     func(s *signedStore, _ *http.Request) { s.keys = nil },
		"one key":           func(s *signedStore, _ *http.Request) { s.keys = s.keys[:1] },
		"unknown workspace": func(_ *signedStore, r *http.Request) { r.SetPathValue("workspace_id", "nowhere") },
		"NUL in the name":   func(_ *signedStore, r *http.Request) { r.SetPathValue("endpoint_id", "a\x00") },
		"old":               func(s *signedStore, _ *http.Request) { s.now = s.now.Add(time.Hour) },
		"too large for it":  func(s *signedStore, _ *http.Request) { s.max = 1 },
		"wrong form":        func(_ *signedStore, r *http.Request) { r.Body = io.NopCloser(strings.NewReader("]")) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSignedStore()
			w := sign(s, body, signedBy(t, "whsec_b3RoZXI=", body, s.now), func(r *http.Request) { change(s, r) })
			bodies[w.Body.String()], codes[w.Code] = true, true
			require.Empty(t, s.guarded, "an attacker writes nothing")
			require.Empty(t, s.received)
		})
	}
	require.Len(t, bodies, 1)
	require.Equal(t, map[int]bool{401: true}, codes)
}

func TestSignedBodyIsHashedUnchanged(t *testing.T) {
	s := newSignedStore()
	const body = `{"text":"a"}`
	requireProblem(t, sign(s, `{"text": "a"}`, signedBy(t, signingKey, body, s.now)), 401)
	requireProblem(t, sign(s, body, signedBy(t, signingKey, body, s.now), func(r *http.Request) { r.Header.Set("webhook-id", "msg-2") }), 401)
	requireProblem(t, sign(s, body, signedBy(t, signingKey, body, s.now), func(r *http.Request) { r.Header.Set("webhook-timestamp", "1") }), 401)
	require.Empty(t, s.received)
}

func TestSignedTooLarge(t *testing.T) {
	body := `{"text":"` + strings.Repeat("a", 5000) + `"}`
	s := newSignedStore()
	s.verdict = push.Verdict{Reason: "size"}
	for _, announced := range []int64{int64(len(body)), -1} {
		s.guarded = nil
		requireProblem(t, sign(s, body, signedBy(t, signingKey, body, s.now), func(r *http.Request) { r.ContentLength = announced }), 413)
		require.Len(t, s.guarded, 1, "the sender is known: it is counted")
		require.Greater(t, s.guarded[0][0], s.max)
	}
	t.Run("for anyone", func(t *testing.T) {
		s := newSignedStore()
		w := sign(s, "", signedBy(t, signingKey, "", s.now), func(r *http.Request) { r.Body, r.ContentLength = io.NopCloser(unread{t}), 1<<40 })
		requireProblem(t, w, 413)
		requireProblem(t, sign(s, strings.Repeat(" ", 16<<20+1), signedBy(t, signingKey, "", s.now), func(r *http.Request) { r.ContentLength = -1 }), 413)
		require.Empty(t, s.guarded)
	})
}

func TestSigningKeyIsNeverLogged(t *testing.T) {
	var logs bytes.Buffer
	s := newSignedStore()
	s.keys = []string{"canary-no-key"}
	r := httptest.NewRequest(http.MethodPost, "/hooks/push/acme/site", strings.NewReader(`{}`))
	r.SetPathValue("workspace_id", "acme")
	r.SetPathValue("endpoint_id", "site")
	for name, value := range signedBy(t, signingKey, `{}`, s.now) {
		r.Header.Set(name, value)
	}
	push.NewSigned(s, s, slog.New(slog.NewJSONHandler(&logs, nil))).ServeHTTP(httptest.NewRecorder(), r)
	require.Contains(t, logs.String(), "acme")
	require.NotContains(t, logs.String(), "canary")
}
