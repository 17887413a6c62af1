// Package push is the webhook door of the first stage. POST /hooks/push takes one
// post or an array of them from a source that is known by its secret alone;
// POST /hooks/push/{workspace_id}/{endpoint_id} takes them from one that signs by
// the Standard Webhooks specification.
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
	"net/http"
	"strings"
)

const endpointKind = "webhook_push"

// Store is what the door for secrets needs of the database.
type Store interface {
	Guard
	// ResolveEndpoint finds the enabled endpoint of a secret's lower-case hexadecimal
	// SHA-256; nil when there is none.
	ResolveEndpoint(ctx context.Context, kind, secretHash string) (*Endpoint, error)
	// ReceivePush takes an array of posts in one transaction and answers
	// {"run_id", "results": [one a post, in order]}.
	ReceivePush(ctx context.Context, workspace, endpoint string, items json.RawMessage) (json.RawMessage, error)
}

// Handler serves POST /hooks/push. It is safe for concurrent use.
type Handler struct {
	door

	store Store
}

var _ http.Handler = (*Handler)(nil)

// New makes the handler over the database.
func New(store Store, log *slog.Logger) *Handler {
	return &Handler{door: door{guard: store, log: log}, store: store}
}

// ServeHTTP answers one push.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if refusal := form(w, r); refusal != nil {
		writeProblem(w, refusal)
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
		writeProblem(w, unknownSecret.says("No enabled endpoint has this secret. Send it as Authorization: Bearer SECRET; signed requests go to /hooks/push/WORKSPACE/ENDPOINT."))
		return
	}
	if body, ok := h.read(w, r, *endpoint); ok {
		h.enter(w, r, *endpoint, body, func(ctx context.Context, items json.RawMessage) (json.RawMessage, error) {
			return h.store.ReceivePush(ctx, endpoint.WorkspaceID, endpoint.EndpointID, items)
		})
	}
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
		writeProblem(w, cut())
		return nil, false
	}
	return body, true
}

func cut() *problem {
	return bodyCut.says("The body ended before it was complete. Send it again.")
}
