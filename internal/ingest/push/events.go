package push

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"

	"autopost/internal/problem"
)

// EventStore is what domain events need from the database. *pg.Store implements it.
type EventStore interface {
	Store
	// ReceiveEvent stores one domain event and returns {"status", "submission_id", …}.
	ReceiveEvent(ctx context.Context, workspace, endpoint string, event json.RawMessage) (json.RawMessage, error)
}

// EventHandler serves POST /hooks/events: one domain event from a source with the secret of an endpoint. It is safe for
// concurrent use.
type EventHandler struct {
	Handler

	events EventStore
}

var _ http.Handler = (*EventHandler)(nil)

// NewEvents makes the handler over the database.
func NewEvents(store EventStore, log *slog.Logger) *EventHandler {
	return &EventHandler{Handler: *New(store, log), events: store}
}

// The further statuses of an event.
const (
	statusPending  = "pending"
	statusApproved = "approved"
	statusSkipped  = "skipped"
	statusFailed   = "failed"
)

// eventResult is the answer of the database for an event.
type eventResult struct {
	Status       string          `json:"status"`
	Reason       string          `json:"reason,omitempty"`
	RunID        string          `json:"run_id"`
	SubmissionID *string         `json:"submission_id"`
	MessageID    *string         `json:"message_id"`
	Errors       []problem.Fault `json:"errors,omitempty"`
}

// ServeHTTP answers one event: 202 if it was stored, 200 for a repeat, 422 if it is invalid.
func (h *EventHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	endpoint, body, ok := h.open(w, r)
	if !ok {
		return
	}
	posts, refusal := parse(body)
	if refusal == nil && (posts.array || len(posts.items[0].faults) > 0) {
		refusal = problem.WrongEvent.Says("The body must be one event as an object.").With(posts.items[0].faults...)
	}
	if refusal != nil {
		problem.Write(w, hinted(refusal, r))
		return
	}
	if !h.admit(w, r, *endpoint, len(body), 1) {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), storeTimeout)
	defer cancel()
	raw, err := h.events.ReceiveEvent(ctx, endpoint.WorkspaceID, endpoint.EndpointID, posts.items[0].raw)
	var result eventResult
	if err == nil {
		err = json.Unmarshal(raw, &result)
	}
	status := statusOfEvent(result)
	if err == nil && status == 0 {
		err = fmt.Errorf("read answer: unknown status %q", result.Status)
	}
	if err != nil {
		h.unavailable(w, fmt.Errorf("receive event ws=%s endpoint=%s: %w", endpoint.WorkspaceID, endpoint.EndpointID, err))
		return
	}
	h.log.Info("event.received", "workspace_id", endpoint.WorkspaceID, "endpoint_id", endpoint.EndpointID,
		"status", status, "answer", result.Status, "run_id", result.RunID)
	if status == http.StatusUnprocessableEntity {
		problem.Write(w, problem.WrongEvent.Says("The event is invalid%s", firstOf(result.Errors)).With(result.Errors...))
		return
	}
	writeJSON(w, status, result)
}

// statusOfEvent returns the HTTP status of an answer; 0 for an unknown one.
func statusOfEvent(r eventResult) int {
	switch r.Status {
	case statusPending, statusApproved, statusFailed:
		return http.StatusAccepted
	case statusSkipped:
		if r.Reason == statusDuplicate {
			return http.StatusOK
		}
		return http.StatusAccepted
	case statusDuplicate:
		return http.StatusOK
	case statusRejected:
		return http.StatusUnprocessableEntity
	}
	return 0
}
