package push_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/ingest/push"
)

// eventStore answers each event with the same answer.
type eventStore struct {
	*store

	event string
}

func (s *eventStore) ReceiveEvent(_ context.Context, _, _ string, event json.RawMessage) (json.RawMessage, error) {
	s.event = string(event)
	return json.RawMessage(s.answer), nil
}

func postEvent(answer, body, given string) (*httptest.ResponseRecorder, *eventStore) {
	s := &eventStore{store: newStore()}
	s.answer = answer
	r := httptest.NewRequest(http.MethodPost, "/hooks/events", strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+given)
	w := httptest.NewRecorder()
	push.NewEvents(s, slog.New(slog.DiscardHandler)).ServeHTTP(w, r)
	return w, s
}

func TestAnswersForOneEvent(t *testing.T) {
	for _, c := range []struct {
		answer string
		code   int
	}{
		{`{"status":"pending","run_id":"r","submission_id":"s","message_id":null}`, http.StatusAccepted},
		{`{"status":"approved","run_id":"r","submission_id":"s","message_id":"m"}`, http.StatusAccepted},
		{`{"status":"skipped","reason":"disabled","run_id":"r","submission_id":"s","message_id":null}`, http.StatusAccepted},
		{`{"status":"skipped","reason":"duplicate","run_id":"r","submission_id":"first","message_id":null}`, http.StatusOK},
		{`{"status":"duplicate","run_id":"r","submission_id":"first","message_id":null}`, http.StatusOK},
	} {
		w, s := postEvent(c.answer, `{"event":"E","payload":{}}`, secret)
		require.Equal(t, c.code, w.Code, c.answer)
		require.JSONEq(t, c.answer, w.Body.String())
		require.JSONEq(t, `{"event":"E","payload":{}}`, s.event)
	}
}

func TestInvalidEventsNameTheField(t *testing.T) {
	w, _ := postEvent(`{"status":"rejected","run_id":"r","errors":[{"field":"payload.prompt","reason":"is missing","remedy":"write it"}]}`, `{"event":"E"}`, secret)
	p := requireProblem(t, w, http.StatusUnprocessableEntity)
	require.Equal(t, "urn:autopost:problem:wrong-event", p["type"])
	require.Contains(t, p["detail"], "payload.prompt is missing; write it")
	for _, body := range []string{`[{"event":"E"}]`, `{"event":"\u0000"}`, `7`} {
		w, s := postEvent(`{}`, body, secret)
		requireProblem(t, w, http.StatusUnprocessableEntity)
		require.Empty(t, s.event, body)
	}
	w, _ = postEvent(`{}`, `{"event":`, secret)
	requireProblem(t, w, http.StatusBadRequest)
}

func TestAnUnknownAnswerIsNotASuccess(t *testing.T) {
	w, _ := postEvent(`{"status":"odd"}`, `{"event":"E"}`, secret)
	requireProblem(t, w, http.StatusServiceUnavailable)
	w, s := postEvent(`{}`, `{"event":"E"}`, "other")
	requireProblem(t, w, http.StatusUnauthorized)
	require.Empty(t, s.event)
}
