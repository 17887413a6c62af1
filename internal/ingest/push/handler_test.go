package push_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/ingest/push"
	"autopost/internal/problem"
)

const secret = "canary-3f9a7c"

var errGone = errors.New("connection refused")

// store is a Store with one endpoint and configured answers.
type store struct {
	push.Store

	max      int
	verdict  push.Verdict
	statuses []string
	answer   string

	resolveErr, guardErr, receiveErr error

	guarded  [][2]int
	received []string
}

func newStore() *store {
	return &store{max: 4096, verdict: push.Verdict{Admitted: true}}
}

func (s *store) ResolveEndpoint(_ context.Context, kind, hash string) (*push.Endpoint, error) {
	if s.resolveErr != nil {
		return nil, s.resolveErr
	}
	sum := sha256.Sum256([]byte(secret))
	if kind != "webhook_push" || hash != hex.EncodeToString(sum[:]) {
		return nil, nil
	}
	return &push.Endpoint{WorkspaceID: "acme", EndpointID: "site", MaxPayloadBytes: s.max}, nil
}

func (s *store) GuardIngress(_ context.Context, workspace, endpoint string, bytes, items int) (push.Verdict, error) {
	if workspace != "acme" || endpoint != "site" {
		return push.Verdict{}, fmt.Errorf("unexpected endpoint %s/%s", workspace, endpoint)
	}
	s.guarded = append(s.guarded, [2]int{bytes, items})
	return s.verdict, s.guardErr
}

func (s *store) ReceivePush(_ context.Context, _, _ string, items json.RawMessage) (json.RawMessage, error) {
	s.received = append(s.received, string(items))
	if s.receiveErr != nil {
		return nil, s.receiveErr
	}
	if s.answer != "" {
		return json.RawMessage(s.answer), nil
	}
	var results []string
	for _, status := range s.statuses {
		results = append(results, resultOf(status))
	}
	return json.RawMessage(`{"run_id":"r1","results":[` + strings.Join(results, ",") + `]}`), nil
}

// resultOf returns the answer of the database for one post.
func resultOf(status string) string {
	switch status {
	case "rejected":
		return `{"status":"rejected","run_id":"r1","trace_id":null,"message_id":null,"enqueued":0,"deduped":0,"invalid":0,"skipped":0,
			"errors":[{"field":"text","reason":"nothing to send","remedy":"send text, media or link"}],"warnings":[]}`
	case "accepted":
		return `{"status":"accepted","run_id":"r1","trace_id":"t1","message_id":null,"submission_id":"s1","enqueued":0,"deduped":0,"invalid":0,"skipped":0,"errors":[],"warnings":[]}`
	default:
		return `{"status":"` + status + `","run_id":"r1","trace_id":"t1","message_id":"m1","enqueued":2,"deduped":1,"invalid":0,"skipped":3,"errors":[],"warnings":["colour"]}`
	}
}

func post(s *store, body string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/hooks/push", strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+secret)
	for _, f := range change {
		f(r)
	}
	w := httptest.NewRecorder()
	push.New(s, slog.New(slog.DiscardHandler)).ServeHTTP(w, r)
	return w
}

func requireProblem(t *testing.T, w *httptest.ResponseRecorder, status int) map[string]any {
	t.Helper()
	require.Equal(t, status, w.Code, w.Body.String())
	require.Equal(t, "application/problem+json", w.Header().Get("Content-Type"))
	var p map[string]any
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &p))
	kind, known := problem.Of(fmt.Sprint(p["type"]))
	require.True(t, known, "%s is not in the catalogue", p["type"])
	require.Equal(t, []any{kind.Status, kind.Title}, []any{status, p["title"]})
	require.EqualValues(t, status, p["status"])
	require.NotEmpty(t, p["detail"])
	return p
}

func TestAnswersForOnePost(t *testing.T) {
	const full = `{"status":"%s","run_id":"r1","trace_id":"t1","message_id":"m1","enqueued":2,"deduped":1,"invalid":0,"skipped":3,"warnings":["colour"]}`
	for _, c := range []struct {
		status string
		code   int
		want   string
	}{
		{"enqueued", 202, fmt.Sprintf(full, "enqueued")},
		{"duplicate", 200, fmt.Sprintf(full, "duplicate")},
		{"accepted", 202, `{"status":"accepted","run_id":"r1","trace_id":"t1","message_id":null,"submission_id":"s1","enqueued":0,"deduped":0,"invalid":0,"skipped":0}`},
	} {
		t.Run(c.status, func(t *testing.T) {
			s := newStore()
			s.statuses = []string{c.status}
			w := post(s, ` {"text":"hello","text":"again"} `)
			require.Equal(t, c.code, w.Code)
			require.Equal(t, "application/json", w.Header().Get("Content-Type"))
			require.JSONEq(t, c.want, w.Body.String())
			require.Len(t, s.received, 1)
			require.JSONEq(t, `[{"text":"again"}]`, s.received[0])
			require.Equal(t, [][2]int{{33, 1}}, s.guarded)
		})
	}
	t.Run("rejected", func(t *testing.T) {
		s := newStore()
		s.statuses = []string{"rejected"}
		p := requireProblem(t, post(s, `{}`), 422)
		require.Equal(t, []any{map[string]any{"field": "text", "reason": "nothing to send", "remedy": "send text, media or link"}}, p["errors"])
	})
}

func TestAnswersForAnArray(t *testing.T) {
	for _, c := range []struct {
		name     string
		statuses []string
		code     int
	}{
		{"one accepted", []string{"rejected", "accepted", "duplicate"}, 202},
		{"one enqueued", []string{"duplicate", "enqueued"}, 202},
		{"all duplicates", []string{"duplicate", "duplicate"}, 200},
		{"duplicates and wrong ones", []string{"duplicate", "rejected"}, 200},
		{"all wrong", []string{"rejected", "rejected"}, 422},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStore()
			s.statuses = c.statuses
			w := post(s, "["+strings.TrimSuffix(strings.Repeat(`{"text":"a"},`, len(c.statuses)), ",")+"]")
			require.Equal(t, c.code, w.Code)
			var got struct{ Results []map[string]any }
			require.NoError(t, json.Unmarshal(w.Body.Bytes(), &got))
			require.Len(t, got.Results, len(c.statuses))
			for i, r := range got.Results {
				require.Equal(t, c.statuses[i], r["status"])
				if c.statuses[i] == "rejected" {
					require.NotEmpty(t, r["errors"])
					require.NotContains(t, r, "enqueued")
				}
			}
			if c.code == 422 {
				requireProblem(t, w, 422)
			}
			require.Equal(t, len(c.statuses), s.guarded[0][1])
		})
	}
	t.Run("a post of bad form does not hold up the rest", func(t *testing.T) {
		s := newStore()
		s.statuses = []string{"enqueued", "duplicate"}
		w := post(s, `[{"text":"a"},{"text":"x\u0000"},7,{"text":"b"}]`)
		require.Equal(t, 202, w.Code)
		require.JSONEq(t, `[{"text":"a"},{"text":"b"}]`, s.received[0])
		var got struct {
			Results []struct {
				Status string
				Errors []struct{ Field string }
			}
		}
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &got))
		require.Equal(t, "enqueued", got.Results[0].Status)
		require.Equal(t, "text", got.Results[1].Errors[0].Field)
		require.Equal(t, "body", got.Results[2].Errors[0].Field)
		require.Equal(t, "duplicate", got.Results[3].Status)
		require.Equal(t, 4, s.guarded[0][1])
	})
	t.Run("all of bad form", func(t *testing.T) {
		s := newStore()
		p := requireProblem(t, post(s, `[null,[]]`), 422)
		require.Len(t, p["results"], 2)
		require.Empty(t, s.received)
	})
}

func TestBodySyntax(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 32) + `{}` + strings.Repeat(`}`, 32)
	for _, c := range []struct {
		name, body string
		code       int
		says       string // in the detail of a 400, the field of a 422
	}{
		{"empty", "", 400, "at byte 0"},
		{"cut", `{"text":"a`, 400, "at byte 10"},
		{"trailing", `{"text":"a"} x`, 400, "at byte 14"},
		{"invalid UTF-8", "{\"text\":\"a\xff\"}", 400, "at byte 10"},
		{"string", `"text"`, 422, "body"},
		{"null", `null`, 422, "body"},
		{"empty array", `[]`, 422, "body"},
		{"too many", "[" + strings.Repeat("{},", 100) + "{}]", 422, "body"},
		{"NUL", `{"media":[{"url":"a"},{"caption":"x\u0000"}]}`, 422, "media[1].caption"},
		{"NUL in a key", `{"source":{"a\u0000b":1}}`, 422, "source.ab"},
		{"high surrogate alone", `{"tags":["a",[],"\ud83d!"]}`, 422, "tags[2]"},
		{"low surrogate alone", `{"text":"\udE00"}`, 422, "text"},
		{"two high surrogates", `{"text":"\ud83d\ud83d"}`, 422, "text"},
		{"huge number", `{"a":{"b":[]},"n":1e999999}`, 422, "n"},
		{"too deep", deep, 422, strings.TrimSuffix(strings.Repeat("a.", 32), ".")},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStore()
			p := requireProblem(t, post(s, c.body), c.code)
			require.Empty(t, s.received)
			if c.code == 400 {
				require.Contains(t, p["detail"], c.says)
				return
			}
			require.Equal(t, c.says, p["errors"].([]any)[0].(map[string]any)["field"])
		})
	}
	for name, body := range map[string]string{
		"pair of surrogates": `{"text":"\ud83d\ude00 \\u0000 \\ud83d"}`,
		"deep enough":        strings.Repeat(`{"a":`, 31) + `{}` + strings.Repeat(`}`, 31),
		"numbers":            `{"a":-1.5e300,"b":12345678901234567890123}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore()
			s.statuses = []string{"enqueued"}
			require.Equal(t, 202, post(s, body).Code)
			require.Equal(t, []string{"[" + body + "]"}, s.received)
		})
	}
	t.Run("a hundred posts", func(t *testing.T) {
		s := newStore()
		for range 100 {
			s.statuses = append(s.statuses, "enqueued")
		}
		require.Equal(t, 202, post(s, "["+strings.Repeat("{},", 99)+"{}]").Code)
	})
}

func TestUnknownSecret(t *testing.T) {
	var first *httptest.ResponseRecorder
	for name, header := range map[string]string{
		"none": "", "unknown": "Bearer other", "basic": "Basic " + secret, "bare": secret, "empty": "Bearer ",
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore()
			w := post(s, `{"text":"a"}`, func(r *http.Request) { r.Header.Set("Authorization", header) })
			requireProblem(t, w, 401)
			require.Contains(t, w.Header().Get("WWW-Authenticate"), "Bearer")
			if first == nil {
				first = w
			}
			require.Equal(t, first.Body.String(), w.Body.String())
			require.Equal(t, first.Header(), w.Header())
			require.Empty(t, s.guarded)
		})
	}
	t.Run("the scheme's case does not matter", func(t *testing.T) {
		s := newStore()
		s.statuses = []string{"enqueued"}
		w := post(s, `{}`, func(r *http.Request) { r.Header.Set("Authorization", "bearer "+secret) })
		require.Equal(t, 202, w.Code)
	})
}

// unread is a reader that fails the test at the first read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, io.EOF
}

func TestTooLarge(t *testing.T) {
	t.Run("announced", func(t *testing.T) {
		s := newStore()
		s.max = 10
		s.verdict = push.Verdict{Reason: "size"}
		w := post(s, "", func(r *http.Request) { r.Body, r.ContentLength = io.NopCloser(unread{t}), 1<<40 })
		requireProblem(t, w, 413)
		require.Equal(t, [][2]int{{1<<31 - 1, 1}}, s.guarded)
	})
	t.Run("not announced", func(t *testing.T) {
		s := newStore()
		s.max = 10
		s.guardErr = errGone
		w := post(s, `{"text":"hello"}`, func(r *http.Request) { r.ContentLength = -1 })
		requireProblem(t, w, 413)
		require.Equal(t, [][2]int{{11, 1}}, s.guarded)
	})
	t.Run("by the guard", func(t *testing.T) {
		s := newStore()
		s.verdict = push.Verdict{Reason: "size"}
		requireProblem(t, post(s, `{}`), 413)
		require.Empty(t, s.received)
	})
	t.Run("exactly the limit", func(t *testing.T) {
		s := newStore()
		s.max, s.statuses = 2, []string{"enqueued"}
		require.Equal(t, 202, post(s, `{}`).Code)
	})
}

func TestOverTheRate(t *testing.T) {
	for wait, want := range map[time.Duration]string{1200 * time.Millisecond: "2", 0: "1", 3 * time.Second: "3"} {
		s := newStore()
		s.verdict = push.Verdict{Reason: "rate", RetryAfter: wait}
		w := post(s, `{}`)
		requireProblem(t, w, 429)
		require.Equal(t, want, w.Header().Get("Retry-After"))
		require.Empty(t, s.received)
	}
}

// The answer to a checked request shows the rate of the endpoint. An answer to an unknown caller shows nothing.
func TestAnswersShowTheRateOfTheEndpoint(t *testing.T) {
	for _, c := range []struct {
		rps           float64
		left          int
		policy, state string
	}{
		{5, 4, `"ingress_rps";q=5;w=1`, `"ingress_rps";r=4;t=1`}, {0.4, 0, `"ingress_rps";q=1;w=3`, `"ingress_rps";r=0;t=1`}, {2.5, 1, `"ingress_rps";q=2;w=1`, `"ingress_rps";r=1;t=1`},
	} {
		for _, admitted := range []bool{true, false} {
			s := newStore()
			s.statuses = []string{"enqueued"}
			s.verdict = push.Verdict{Admitted: admitted, Reason: "rate", Quota: push.QuotaOf(c.rps, c.left, 200*time.Millisecond)}
			w := post(s, `{"text":"a"}`)
			require.Equal(t, c.policy, w.Header().Get("RateLimit-Policy"))
			require.Equal(t, c.state, w.Header().Get("RateLimit"))
			w = post(s, `{"text":"a"}`, func(r *http.Request) { r.Header.Set("Authorization", "Bearer other") })
			require.Equal(t, 401, w.Code)
			require.Empty(t, w.Header().Get("RateLimit"))
		}
	}
}

func TestUnavailableDatabase(t *testing.T) {
	for name, change := range map[string]func(*store){
		"resolve":        func(s *store) { s.resolveErr = errGone },
		"guard":          func(s *store) { s.guardErr = errGone },
		"receive":        func(s *store) { s.receiveErr = errGone },
		"no JSON":        func(s *store) { s.answer = `{` },
		"too few":        func(s *store) { s.answer = `{"run_id":"r1","results":[]}` },
		"unknown status": func(s *store) { s.answer = `{"results":[{"status":"maybe"}]}` },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore()
			s.statuses = []string{"enqueued"}
			change(s)
			w := post(s, `{}`)
			requireProblem(t, w, 503)
			require.Equal(t, "5", w.Header().Get("Retry-After"))
			require.NotContains(t, w.Body.String(), errGone.Error())
		})
	}
}

func TestOtherMethodsAndEncodings(t *testing.T) {
	for _, method := range []string{"GET", "HEAD", "PUT", "DELETE"} {
		w := post(newStore(), "", func(r *http.Request) { r.Method = method })
		require.Equal(t, 405, w.Code)
		require.Equal(t, "POST", w.Header().Get("Allow"))
	}
	s := newStore()
	requireProblem(t, post(s, `{}`, func(r *http.Request) { r.Header.Set("Content-Encoding", "gzip") }), 415)
	require.Empty(t, s.guarded)
}

func TestSecretIsNeverLogged(t *testing.T) {
	var logs bytes.Buffer
	s := newStore()
	s.receiveErr = errGone
	r := httptest.NewRequest(http.MethodPost, "/hooks/push", strings.NewReader(`{}`))
	r.Header.Set("Authorization", "Bearer "+secret)
	push.New(s, slog.New(slog.NewJSONHandler(&logs, nil))).ServeHTTP(httptest.NewRecorder(), r)
	require.Contains(t, logs.String(), "acme")
	require.NotContains(t, logs.String(), secret)
}
