// Package push is the webhook door of the first stage: POST /hooks/push takes one
// post or an array of them from a source that is known by its secret alone.
//
// It guards, checks the form and hands over; what a post means, whether it is a
// repeat and who gets it is decided by the database. A 2xx is given only after
// the database has committed.
package push

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"strings"
	"time"
)

const (
	endpointKind = "webhook_push"
	// storeTimeout bounds each call to the database; after it the source is told to
	// come again.
	storeTimeout = 30 * time.Second
	// comeAgain is the Retry-After of an answer that the database could not give.
	comeAgain = 5 * time.Second
)

// Endpoint is the row that a secret resolves to.
type Endpoint struct {
	WorkspaceID string
	EndpointID  string
	// MaxPayloadBytes bounds the body.
	MaxPayloadBytes int
}

// Verdict is the guard's answer.
type Verdict struct {
	Admitted bool
	// Reason is "rate" or "size" when the request is not admitted.
	Reason string
	// RetryAfter is how long the source has to wait when the reason is "rate".
	RetryAfter time.Duration
}

// Store is what this door needs of the database.
type Store interface {
	// ResolveEndpoint finds the enabled endpoint of a secret's lower-case hexadecimal
	// SHA-256; nil when there is none.
	ResolveEndpoint(ctx context.Context, kind, secretHash string) (*Endpoint, error)
	// GuardIngress counts and judges a request before it is worked on.
	GuardIngress(ctx context.Context, workspace, endpoint string, bytes, items int) (Verdict, error)
	// ReceivePush takes an array of posts in one transaction and answers
	// {"run_id", "results": [one a post, in order]}.
	ReceivePush(ctx context.Context, workspace, endpoint string, items json.RawMessage) (json.RawMessage, error)
}

// Handler serves POST /hooks/push. It is safe for concurrent use.
type Handler struct {
	store Store
	log   *slog.Logger
}

var _ http.Handler = (*Handler)(nil)

// New makes the handler over the database.
func New(store Store, log *slog.Logger) *Handler {
	return &Handler{store: store, log: log}
}

// ServeHTTP answers one push.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		writeProblem(w, problem{Status: http.StatusMethodNotAllowed, Detail: "Posts are pushed with POST."})
		return
	}
	endpoint, err := h.resolve(r)
	if err != nil {
		h.unavailable(w, err)
		return
	}
	if endpoint == nil {
		// The same words for an unknown, a disabled and a missing secret.
		w.Header().Set("WWW-Authenticate", `Bearer realm="autopost"`)
		writeProblem(w, problem{Status: http.StatusUnauthorized, Detail: "No enabled endpoint has this secret. Send it as Authorization: Bearer SECRET."})
		return
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		writeProblem(w, problem{Status: http.StatusUnsupportedMediaType, Detail: "Compressed bodies are not taken. Send the JSON as it is."})
		return
	}
	body, ok := h.read(w, r, endpoint)
	if !ok {
		return
	}
	batch, refusal := parse(body)
	if refusal != nil {
		writeProblem(w, *refusal)
		return
	}
	if !h.admit(w, r, endpoint, len(body), len(batch.items)) {
		return
	}
	h.receive(w, r, endpoint, batch)
}

// resolve returns nil when the request bears no secret of an enabled endpoint.
func (h *Handler) resolve(r *http.Request) (*Endpoint, error) {
	scheme, secret, found := strings.Cut(r.Header.Get("Authorization"), " ")
	secret = strings.TrimSpace(secret)
	if !found || !strings.EqualFold(scheme, "Bearer") || secret == "" {
		return nil, nil
	}
	hash := sha256.Sum256([]byte(secret))
	ctx, cancel := context.WithTimeout(r.Context(), storeTimeout)
	defer cancel()
	endpoint, err := h.store.ResolveEndpoint(ctx, endpointKind, hex.EncodeToString(hash[:]))
	if err != nil {
		return nil, fmt.Errorf("resolve endpoint: %w", err)
	}
	return endpoint, nil
}

// read takes the body up to the endpoint's limit. A length that is announced and
// too large is refused unread.
func (h *Handler) read(w http.ResponseWriter, r *http.Request, e *Endpoint) ([]byte, bool) {
	limit := int64(e.MaxPayloadBytes)
	if r.ContentLength > limit {
		h.tooLarge(w, r, e, r.ContentLength)
		return nil, false
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if errors.As(err, new(*http.MaxBytesError)) {
		h.tooLarge(w, r, e, limit+1)
		return nil, false
	}
	if err != nil {
		writeProblem(w, problem{Status: http.StatusBadRequest, Detail: "The body ended before it was complete."})
		return nil, false
	}
	return body, true
}

// tooLarge has the guard record the drop; that it could not changes nothing for
// the source, whose body stays too large.
func (h *Handler) tooLarge(w http.ResponseWriter, r *http.Request, e *Endpoint, size int64) {
	if _, err := h.guard(r, e, int(min(size, math.MaxInt32)), 1); err != nil {
		h.log.Error("push.drop_not_recorded", "error", err)
	}
	sizeProblem(w, e)
}

func sizeProblem(w http.ResponseWriter, e *Endpoint) {
	writeProblem(w, problem{
		Status: http.StatusRequestEntityTooLarge,
		Detail: fmt.Sprintf("This endpoint takes bodies of up to %d bytes. Send large media by URL.", e.MaxPayloadBytes),
	})
}

func (h *Handler) guard(r *http.Request, e *Endpoint, bytes, items int) (Verdict, error) {
	ctx, cancel := context.WithTimeout(r.Context(), storeTimeout)
	defer cancel()
	verdict, err := h.store.GuardIngress(ctx, e.WorkspaceID, e.EndpointID, bytes, items)
	if err != nil {
		return Verdict{}, fmt.Errorf("guard ingress ws=%s endpoint=%s: %w", e.WorkspaceID, e.EndpointID, err)
	}
	return verdict, nil
}

func (h *Handler) admit(w http.ResponseWriter, r *http.Request, e *Endpoint, bytes, items int) bool {
	verdict, err := h.guard(r, e, bytes, items)
	switch {
	case err != nil:
		h.unavailable(w, err)
	case verdict.Admitted:
		return true
	case verdict.Reason == "size":
		sizeProblem(w, e)
	default:
		retryAfter(w, verdict.RetryAfter)
		writeProblem(w, problem{Status: http.StatusTooManyRequests, Detail: "This endpoint is over its rate of posts. Come again after the time in Retry-After."})
	}
	return false
}

// receive hands the sound posts over and answers for all of them.
func (h *Handler) receive(w http.ResponseWriter, r *http.Request, e *Endpoint, b batch) {
	var results []result
	if sound := b.sound(); len(sound) > 0 {
		ctx, cancel := context.WithTimeout(r.Context(), storeTimeout)
		defer cancel()
		raw, err := h.store.ReceivePush(ctx, e.WorkspaceID, e.EndpointID, join(sound))
		if err == nil {
			results, err = decode(raw, len(sound))
		}
		if err != nil {
			h.unavailable(w, fmt.Errorf("receive push ws=%s endpoint=%s: %w", e.WorkspaceID, e.EndpointID, err))
			return
		}
	}
	results = b.merge(results)
	status := statusOf(results)
	h.log.Info("push.received", "workspace_id", e.WorkspaceID, "endpoint_id", e.EndpointID,
		"items", len(results), "status", status, "run_id", runOf(results))
	if b.array {
		writeArray(w, status, results)
		return
	}
	writeSingle(w, status, results[0])
}

// unavailable tells the source to come again: nothing was taken, or it is not
// known to have been, and a repeat is recognised.
func (h *Handler) unavailable(w http.ResponseWriter, err error) {
	h.log.Error("push.unavailable", "error", err)
	retryAfter(w, comeAgain)
	writeProblem(w, problem{Status: http.StatusServiceUnavailable, Detail: "The database cannot take posts at the moment. Nothing is lost by sending this again."})
}
