// Package botupdates receives updates of bots from platforms: POST /hooks/telegram and POST /hooks/max accept one
// update each. The secret of the subscription identifies the endpoint.
//
// It checks the rate and the syntax and calls the database, which decides everything else. It answers 200 only after
// the commit; any other answer makes the platform retry.
package botupdates

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
	"time"

	"autopost"
	"autopost/internal/failpoint"
	"autopost/internal/ingest/push"
	"autopost/internal/problem"
)

const (
	// answerWithin limits a request; MAX waits 30 s for the answer.
	answerWithin = 20 * time.Second
	// retryWait is the Retry-After if the database is unavailable.
	retryWait = 5 * time.Second
)

// headers are the headers with the secret, by platform.
var headers = map[autopost.Platform]string{
	autopost.Telegram: "X-Telegram-Bot-Api-Secret-Token",
	autopost.MAX:      "X-Max-Bot-Api-Secret",
}

// Endpoint is the endpoint of a bot.
type Endpoint struct {
	push.Endpoint

	// Platform is the platform of the bot.
	Platform autopost.Platform `json:"platform"`
}

// Taken is the result of an update.
type Taken struct {
	// Status is "stored" or "duplicate"; Kind is the platform's name of the type of update.
	Status, Kind string
	// Rights is "lost" if channels were paused, "regained" if they were resumed, else "".
	Rights string
	// Bot is what the shop bot did with a message: processed, received (it waits), logged, relayed or handed_back; "" if
	// the update is not for it.
	Bot string
}

// Store is what this package needs from the database. *pg.Store implements it.
type Store interface {
	// GuardIngress counts a request and checks its size and rate.
	GuardIngress(ctx context.Context, workspace, endpoint string, bytes, items int) (push.Verdict, error)
	// ResolveBotEndpoint returns the enabled endpoint with this lower-case hexadecimal SHA-256 of its secret; nil if
	// there is none.
	ResolveBotEndpoint(ctx context.Context, secretHash string) (*Endpoint, error)
	// ReceiveUpdate stores an update once, in one transaction.
	ReceiveUpdate(ctx context.Context, workspace, endpoint string, update json.RawMessage) (Taken, error)
}

// Handler serves the updates of one platform. It is safe for concurrent use.
type Handler struct {
	platform autopost.Platform
	store    Store
	log      *slog.Logger
}

var _ http.Handler = (*Handler)(nil)

// New makes the handler of a platform, [autopost.Telegram] or [autopost.MAX].
func New(platform autopost.Platform, store Store, log *slog.Logger) *Handler {
	return &Handler{platform: platform, store: store, log: log.With("platform", platform)}
}

// ServeHTTP answers one update.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		problem.Write(w, problem.WrongMethod.Says("The method must be POST, got %s.", r.Method))
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

// resolve returns nil unless an enabled endpoint of this platform has the secret. The lookup uses a hash, so its time
// reveals nothing about the secret.
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

// take reads, checks and stores an update.
func (h *Handler) take(ctx context.Context, w http.ResponseWriter, r *http.Request, e Endpoint) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(e.MaxPayloadBytes)))
	size := int64(len(body))
	if errors.As(err, new(*http.MaxBytesError)) {
		size = max(r.ContentLength, int64(e.MaxPayloadBytes)+1)
	} else if err != nil {
		problem.Write(w, problem.BodyCut.Says("The body ended before it was complete. Send it again."))
		return
	}
	if !h.admit(ctx, w, e, size) {
		return
	}
	update, err := push.Object(body)
	switch {
	case errors.Is(err, push.ErrUnstorable):
		// A retry would send the same update.
		h.log.Warn("update.unreadable", "workspace_id", e.WorkspaceID, "endpoint_id", e.EndpointID, "error", err)
	case err != nil:
		problem.Write(w, problem.NotJSON.Says("The body must be a JSON object: %s.", err))
	default:
		h.receive(ctx, w, e, update)
	}
}

// admit checks the rate and the size, and answers a refused request.
func (h *Handler) admit(ctx context.Context, w http.ResponseWriter, e Endpoint, size int64) bool {
	verdict, err := h.store.GuardIngress(ctx, e.WorkspaceID, e.EndpointID, int(min(size, math.MaxInt32)), 1)
	verdict.Quota.Show(w)
	switch {
	case err != nil:
		h.unavailable(w, fmt.Errorf("guard ingress ws=%s endpoint=%s: %w", e.WorkspaceID, e.EndpointID, err))
	case verdict.Admitted:
		return true
	case verdict.Reason == "size":
		problem.Write(w, problem.TooLarge.Says("The update must have up to %d bytes, the max_payload_bytes of this endpoint.", e.MaxPayloadBytes))
	case verdict.Reason == "disabled":
		h.unknown(w)
	default:
		seconds := problem.RetryAfter(w, verdict.RetryAfter)
		problem.Write(w, problem.OverRate.Says("This endpoint is over its rate of updates. Send this again in %d s.", seconds))
	}
	return false
}

func (h *Handler) receive(ctx context.Context, w http.ResponseWriter, e Endpoint, update json.RawMessage) {
	taken, err := h.store.ReceiveUpdate(ctx, e.WorkspaceID, e.EndpointID, update)
	if err != nil {
		h.unavailable(w, fmt.Errorf("receive update ws=%s endpoint=%s: %w", e.WorkspaceID, e.EndpointID, err))
		return
	}
	failpoint.Hit(failpoint.UpdateCommitted)
	level := slog.LevelDebug
	if taken.Rights != "" {
		level = slog.LevelWarn
	}
	h.log.Log(ctx, level, "update.received", "workspace_id", e.WorkspaceID, "endpoint_id", e.EndpointID,
		"kind", taken.Kind, "status", taken.Status, "rights", taken.Rights, "bot", taken.Bot)
	w.WriteHeader(http.StatusOK)
}

// unknown gives the same answer to a missing, an unknown and a disabled secret, and to one of another platform.
func (h *Handler) unknown(w http.ResponseWriter) {
	problem.Write(w, problem.UnknownSecret.Says("No enabled endpoint has this secret. The daemon subscribes its bots with their secrets."))
}

// unavailable makes the platform retry. If the update was stored after all, the retry is a duplicate.
func (h *Handler) unavailable(w http.ResponseWriter, err error) {
	h.log.Error("update.unavailable", "error", err)
	seconds := problem.RetryAfter(w, retryWait)
	problem.Write(w, problem.Unavailable.Says("Updates cannot be stored now. Send this again in %d s: nothing is lost.", seconds))
}
