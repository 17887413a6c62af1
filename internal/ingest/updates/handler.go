// Package updates is the door by which platforms tell what happens to their bots:
// POST /hooks/telegram and POST /hooks/max take one update each, from a platform
// that is known by the secret that it was given when it was subscribed.
//
// It guards and hands over. What an update means, whether it is a repeat and what
// follows from it is decided by the database. 200 is given only after the database
// has committed; any other answer makes the platform come again.
package updates

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
	"strconv"
	"time"

	"autopost"
	"autopost/internal/ingest/push"
)

const (
	// answerWithin bounds a request; MAX waits 30 s for its answer.
	answerWithin = 20 * time.Second
	// comeAgain is the Retry-After of an answer that the database could not give.
	comeAgain = 5 * time.Second
)

// headers bear the secret, by platform.
var headers = map[autopost.Platform]string{
	autopost.Telegram: "X-Telegram-Bot-Api-Secret-Token",
	autopost.MAX:      "X-Max-Bot-Api-Secret",
}

// Endpoint is what a request was found to be meant for.
type Endpoint struct {
	push.Endpoint

	// Platform is whose bot it is.
	Platform autopost.Platform
}

// Taken is what became of an update.
type Taken struct {
	// Status is "stored" or "duplicate", Kind the platform's name of its type.
	Status, Kind string
	// Rights is "lost" or "regained" where channels paused or went on; else "".
	Rights string
}

// Store is what the door needs of the database.
type Store interface {
	push.Guard
	// ResolveBotEndpoint finds the enabled endpoint of a secret's lower-case hexadecimal
	// SHA-256; nil when there is none.
	ResolveBotEndpoint(ctx context.Context, secretHash string) (*Endpoint, error)
	// ReceiveUpdate takes an update in one transaction, and once.
	ReceiveUpdate(ctx context.Context, workspace, endpoint string, update json.RawMessage) (Taken, error)
}

// Handler serves the updates of one platform. It is safe for concurrent use.
type Handler struct {
	platform autopost.Platform
	store    Store
	log      *slog.Logger
}

var _ http.Handler = (*Handler)(nil)

// New makes the handler of a platform, [autopost.Telegram] or [autopost.MAX], over the database.
func New(platform autopost.Platform, store Store, log *slog.Logger) *Handler {
	return &Handler{platform: platform, store: store, log: log.With("platform", platform)}
}

// ServeHTTP answers one update.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "Updates are pushed with POST.", http.StatusMethodNotAllowed)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), answerWithin)
	defer cancel()
	endpoint, err := h.resolve(ctx, r.Header.Get(headers[h.platform]))
	switch {
	case err != nil:
		h.unavailable(w, err)
	case endpoint == nil:
		h.unknown(w)
	default:
		h.take(ctx, w, r, *endpoint)
	}
}

// resolve returns nil unless the secret is that of an enabled endpoint of this platform. It is looked up by its
// hash, so that the time that takes says nothing of it.
func (h *Handler) resolve(ctx context.Context, secret string) (*Endpoint, error) {
	if secret == "" {
		return nil, nil
	}
	hash := sha256.Sum256([]byte(secret))
	endpoint, err := h.store.ResolveBotEndpoint(ctx, hex.EncodeToString(hash[:]))
	if err != nil {
		return nil, fmt.Errorf("resolve endpoint: %w", err)
	}
	if endpoint != nil && endpoint.Platform != h.platform {
		return nil, nil
	}
	return endpoint, nil
}

// take guards, reads and hands over.
func (h *Handler) take(ctx context.Context, w http.ResponseWriter, r *http.Request, e Endpoint) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(e.MaxPayloadBytes)))
	size := int64(len(body))
	if errors.As(err, new(*http.MaxBytesError)) {
		size = max(r.ContentLength, int64(e.MaxPayloadBytes)+1)
	} else if err != nil {
		http.Error(w, "The body ended before it was complete.", http.StatusBadRequest)
		return
	}
	if !h.admit(ctx, w, e, size) {
		return
	}
	update, err := push.Object(body)
	switch {
	case errors.Is(err, push.ErrUnstorable):
		// It will not be another one when it comes again.
		h.log.Warn("update.unreadable", "workspace_id", e.WorkspaceID, "endpoint_id", e.EndpointID, "error", err)
	case err != nil:
		http.Error(w, "The body is no JSON object: "+err.Error()+".", http.StatusBadRequest)
	default:
		h.receive(ctx, w, e, update)
	}
}

// admit has the guard judge the request, and answers one that is not let in.
func (h *Handler) admit(ctx context.Context, w http.ResponseWriter, e Endpoint, size int64) bool {
	verdict, err := h.store.GuardIngress(ctx, e.WorkspaceID, e.EndpointID, int(min(size, math.MaxInt32)), 1)
	switch {
	case err != nil:
		h.unavailable(w, fmt.Errorf("guard ingress ws=%s endpoint=%s: %w", e.WorkspaceID, e.EndpointID, err))
	case verdict.Admitted:
		return true
	case verdict.Reason == "size":
		http.Error(w, "The update is larger than this endpoint takes.", http.StatusRequestEntityTooLarge)
	case verdict.Reason == "disabled":
		h.unknown(w)
	default:
		again(w, verdict.RetryAfter, "This endpoint is over its rate.", http.StatusTooManyRequests)
	}
	return false
}

func (h *Handler) receive(ctx context.Context, w http.ResponseWriter, e Endpoint, update json.RawMessage) {
	taken, err := h.store.ReceiveUpdate(ctx, e.WorkspaceID, e.EndpointID, update)
	if err != nil {
		h.unavailable(w, fmt.Errorf("receive update ws=%s endpoint=%s: %w", e.WorkspaceID, e.EndpointID, err))
		return
	}
	level := slog.LevelDebug
	if taken.Rights != "" {
		level = slog.LevelWarn
	}
	h.log.Log(ctx, level, "update.received", "workspace_id", e.WorkspaceID, "endpoint_id", e.EndpointID,
		"kind", taken.Kind, "status", taken.Status, "rights", taken.Rights)
	w.WriteHeader(http.StatusOK)
}

// unknown answers a missing, an unknown and a disabled secret, and one of another platform, with the same words.
func (h *Handler) unknown(w http.ResponseWriter) {
	http.Error(w, "No enabled endpoint has this secret.", http.StatusUnauthorized)
}

// unavailable makes the platform come again: nothing was taken, or a repeat is recognised.
func (h *Handler) unavailable(w http.ResponseWriter, err error) {
	h.log.Error("update.unavailable", "error", err)
	again(w, comeAgain, "Updates cannot be taken at the moment.", http.StatusServiceUnavailable)
}

func again(w http.ResponseWriter, wait time.Duration, words string, status int) {
	w.Header().Set("Retry-After", strconv.Itoa(max(1, int(math.Ceil(wait.Seconds())))))
	http.Error(w, words, status)
}
