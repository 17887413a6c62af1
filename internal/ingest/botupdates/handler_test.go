package botupdates_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/ingest/botupdates"
	"autopost/internal/ingest/push"
	"autopost/internal/problem"
)

const secret = "canary-8b2f61d0"

var errGone = errors.New("connection refused")

// store is a Store with one endpoint of a Telegram bot and configured answers.
type store struct {
	verdict                          push.Verdict
	resolveErr, guardErr, receiveErr error

	asked    int
	guarded  []int
	received []string
}

func newStore() *store { return &store{verdict: push.Verdict{Admitted: true}} }

func (s *store) ResolveBotEndpoint(_ context.Context, hash string) (*botupdates.Endpoint, error) {
	s.asked++
	sum := sha256.Sum256([]byte(secret))
	if s.resolveErr != nil || hash != hex.EncodeToString(sum[:]) {
		return nil, s.resolveErr
	}
	return &botupdates.Endpoint{
		Endpoint: push.Endpoint{WorkspaceID: "acme", EndpointID: "tg", MaxPayloadBytes: 200}, Platform: autopost.Telegram,
	}, nil
}

func (s *store) GuardIngress(_ context.Context, _, _ string, bytes, _ int) (push.Verdict, error) {
	s.guarded = append(s.guarded, bytes)
	if bytes > 200 {
		return push.Verdict{Reason: "size"}, s.guardErr
	}
	return s.verdict, s.guardErr
}

func (s *store) ReceiveUpdate(_ context.Context, _, _ string, update json.RawMessage) (botupdates.Taken, error) {
	s.received = append(s.received, string(update))
	return botupdates.Taken{Status: "stored", Kind: "message"}, s.receiveErr
}

func send(s *store, body string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	return sendAs(autopost.Telegram, s, body, change...)
}

func sendAs(platform autopost.Platform, s *store, body string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/hooks/telegram", strings.NewReader(body))
	r.Header.Set("X-Telegram-Bot-Api-Secret-Token", secret)
	for _, f := range change {
		f(r)
	}
	w := httptest.NewRecorder()
	botupdates.New(platform, s, slog.New(slog.DiscardHandler)).ServeHTTP(w, r)
	if w.Code >= 400 {
		var p problem.Problem
		kind, known := problem.Kind{}, false
		if json.Unmarshal(w.Body.Bytes(), &p) == nil {
			kind, known = problem.Of(p.Type)
		}
		if !known || kind.Status != w.Code || w.Header().Get("Content-Type") != "application/problem+json" {
			panic(fmt.Sprintf("%d is not in the catalogue of problems: %s", w.Code, w.Body))
		}
	}
	return w
}

// detailOf returns the detail of a problem.
func detailOf(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	var p problem.Problem
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &p))
	return p.Detail
}

func TestUpdateIsAcknowledgedAfterTheCommit(t *testing.T) {
	s := newStore()
	w := send(s, ` {"update_id":1} `)
	require.Equal(t, 200, w.Code)
	require.Empty(t, w.Body.String(), "a method in the answer would be called")
	require.Equal(t, []string{`{"update_id":1} `}, s.received)
}

func TestWrongSecretsGetTheSameAnswer(t *testing.T) {
	set := func(name, value string) func(*http.Request) {
		return func(r *http.Request) {
			r.Header.Del("X-Telegram-Bot-Api-Secret-Token")
			if name != "" {
				r.Header.Set(name, value)
			}
		}
	}
	disabled := newStore()
	disabled.verdict = push.Verdict{Reason: "disabled"}
	answers := []*httptest.ResponseRecorder{
		send(newStore(), `{}`, set("", "")),
		send(newStore(), `{}`, set("X-Telegram-Bot-Api-Secret-Token", "other")),
		send(newStore(), strings.Repeat("x", 10_000), set("X-Telegram-Bot-Api-Secret-Token", "other")),
		send(newStore(), `{}`, set("X-Max-Bot-Api-Secret", secret)),
		send(newStore(), `{}`, set("Authorization", "Bearer "+secret)),
		sendAs(autopost.MAX, newStore(), `{}`, set("X-Max-Bot-Api-Secret", secret)),
		send(disabled, `{}`),
	}
	for _, w := range answers {
		require.Equal(t, 401, w.Code)
		require.Equal(t, answers[0].Body.String(), w.Body.String())
		require.Equal(t, answers[0].Header(), w.Header())
	}
	s := newStore()
	send(s, `{}`, set("", ""))
	require.Zero(t, s.asked, "without a secret the database is not called")
}

func TestBodyMustBeAnObject(t *testing.T) {
	for body, says := range map[string]string{
		"{\"a\":\"\xff\"}": "The body must be a JSON object: invalid UTF-8, at byte 6.", `[]`: "The body must be a JSON object: it is another JSON value.",
	} {
		s := newStore()
		s.verdict = push.Verdict{Admitted: true}
		w := send(s, body)
		require.Equal(t, 400, w.Code)
		require.Equal(t, says, detailOf(t, w))
	}
}

func TestUnavailableDatabaseMakesThePlatformRetry(t *testing.T) {
	for name, s := range map[string]*store{
		"resolve": {resolveErr: errGone}, "guard": {guardErr: errGone}, "receive": {receiveErr: errGone, verdict: push.Verdict{Admitted: true}},
	} {
		w := send(s, `{"update_id":1}`)
		require.Equal(t, 503, w.Code, name)
		require.Equal(t, "5", w.Header().Get("Retry-After"))
		require.NotContains(t, w.Body.String(), errGone.Error())
	}
}

func TestTooLargeUpdateIsRefusedAndRecorded(t *testing.T) {
	s := newStore()
	w := send(s, `{"a":"`+strings.Repeat("x", 300)+`"}`)
	require.Equal(t, 413, w.Code)
	require.Empty(t, s.received)
	require.Equal(t, []int{308}, s.guarded, "the guard records the drop")
	w = send(s, strings.Repeat("x", 300), func(r *http.Request) { r.ContentLength = -1 })
	require.Equal(t, 413, w.Code)
	require.Equal(t, 201, s.guarded[1], "without a Content-Length only one byte above the limit is read")
}

func TestOverRateHasRetryAfter(t *testing.T) {
	s := newStore()
	s.verdict = push.Verdict{Reason: "rate", RetryAfter: 1200 * time.Millisecond, Quota: push.QuotaOf(100, 0, time.Second)}
	w := send(s, `{}`)
	require.Equal(t, 429, w.Code)
	require.Equal(t, "2", w.Header().Get("Retry-After"))
	require.Equal(t, `"ingress_rps";q=100;w=1`, w.Header().Get("RateLimit-Policy"))
	require.Equal(t, `"ingress_rps";r=0;t=1`, w.Header().Get("RateLimit"))
}

func TestUnstorableUpdateIsNotStored(t *testing.T) {
	for body, code := range map[string]int{
		``: 400, `[]`: 400, `7`: 400, `{"a":`: 400, "{\"a\":\"\xff\"}": 400,
		// It would be the same the next time.
		`{"a":"\u0000"}`: 200, `{"a":"\ud800"}`: 200, `{"a":1e999}`: 200, strings.Repeat(`{"a":`, 33) + `1` + strings.Repeat(`}`, 33): 200,
	} {
		s := newStore()
		require.Equal(t, code, send(s, body).Code, body)
		require.Empty(t, s.received, body)
	}
	w := send(newStore(), ``, func(r *http.Request) { r.Method = http.MethodGet })
	require.Equal(t, 405, w.Code)
	require.Equal(t, "POST", w.Header().Get("Allow"))
}

// Every body gets an answer, and only objects that PostgreSQL can store reach the database.
func FuzzUpdate(f *testing.F) {
	for _, seed := range []string{
		`{"update_id":1,"my_chat_member":{"chat":{"id":-100,"type":"channel"},"date":1,"new_chat_member":{"status":"kicked"}}}`,
		`{"update_type":"bot_added","timestamp":1795000003000,"chat_id":-7,"is_channel":true}`, `[]`, `{"a":"\u0000"}`, ` {`, `{"a":1e999}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		s := newStore()
		w := send(s, body)
		if len(s.received) == 1 {
			require.Equal(t, 200, w.Code)
			var update map[string]any
			require.NoError(t, json.Unmarshal([]byte(s.received[0]), &update))
			return
		}
		require.Contains(t, []int{200, 400, 413}, w.Code)
	})
}
