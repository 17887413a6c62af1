// Package push serves the push endpoints. POST /hooks/push accepts one post or an array of posts from a source with a
// secret. POST /hooks/push/{workspace_id}/{endpoint_id} accepts them signed by the Standard Webhooks specification.
//
// It checks the rate and the syntax and calls the database, which decides everything else. It answers 2xx only after
// the commit.
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
	"net/http"
	"strings"
	"time"

	"autopost/internal/problem"
)

const endpointKind = "webhook_push"

// Store is what this package needs from the database. *pg.Store implements it.
type Store interface {
	// GuardIngress counts a request and checks its size and rate.
	GuardIngress(ctx context.Context, workspace, endpoint string, bytes, items int) (Verdict, error)
	// ResolveEndpoint returns the enabled endpoint with this lower-case hexadecimal SHA-256 of its secret; nil if
	// there is none.
	ResolveEndpoint(ctx context.Context, kind, secretHash string) (*Endpoint, error)
	// ReceivePush stores an array of posts in one transaction and returns {"run_id", "results": [one per post, in
	// order]}.
	ReceivePush(ctx context.Context, workspace, endpoint string, items json.RawMessage) (json.RawMessage, error)
	// ResolveSignedEndpoint returns the enabled endpoint for signed requests with this name; nil if there is none.
	ResolveSignedEndpoint(ctx context.Context, signedAt time.Time, workspace, endpoint string) (*SignedEndpoint, error)
	// ReceiveSignedPush is ReceivePush, once for each webhookID.
	ReceiveSignedPush(ctx context.Context, workspace, endpoint, webhookID string, items json.RawMessage) (json.RawMessage, error)
}

// Handler serves POST /hooks/push. It is safe for concurrent use.
type Handler struct {
	receiver
}

var _ http.Handler = (*Handler)(nil)

// New makes the handler over the database.
func New(store Store, log *slog.Logger) *Handler {
	return &Handler{receiver{store: store, log: log}}
}

// ServeHTTP answers one push.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if endpoint, body, ok := h.open(w, r); ok {
		h.enter(w, r, *endpoint, body, func(ctx context.Context, items json.RawMessage) (json.RawMessage, error) {
			return h.store.ReceivePush(ctx, endpoint.WorkspaceID, endpoint.EndpointID, items)
		})
	}
}

// open returns the endpoint and the body of a request. It answers the request if ok is false.
func (h *Handler) open(w http.ResponseWriter, r *http.Request) (endpoint *Endpoint, body []byte, ok bool) {
	if refusal := form(w, r); refusal != nil {
		problem.Write(w, refusal)
		return nil, nil, false
	}
	endpoint, err := h.resolve(r)
	if err != nil {
		h.unavailable(w, err)
		return nil, nil, false
	}
	if endpoint == nil {
		// The answer is the same for an unknown, a disabled and a missing secret.
		w.Header().Set("WWW-Authenticate", `Bearer realm="autopost"`)
		problem.Write(w, problem.UnknownSecret.Says("No enabled endpoint has this secret. Send it as Authorization: Bearer SECRET; signed requests go to /hooks/push/WORKSPACE/ENDPOINT."))
		return nil, nil, false
	}
	body, ok = h.read(w, r, *endpoint)
	return endpoint, body, ok
}

// resolve returns nil if the request has no secret of an enabled endpoint.
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

// read reads the body up to the limit of the endpoint. It does not read a body whose Content-Length is too large.
func (h *Handler) read(w http.ResponseWriter, r *http.Request, e Endpoint) ([]byte, bool) {
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
		problem.Write(w, cut())
		return nil, false
	}
	return body, true
}

func cut() *problem.Problem {
	return problem.BodyCut.Says("The body ended before it was complete. Send it again.")
}
