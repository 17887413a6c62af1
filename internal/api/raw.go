package api

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"autopost"
	"autopost/internal/api/rest"
	"autopost/internal/problem"
	"autopost/internal/worker"
)

// rawTimeout bounds the read of a raw payload.
const rawTimeout = 20 * time.Second

// RawPayloads reads raw payloads.
type RawPayloads interface {
	// Read returns autopost.ErrNoOrigin for a payload that is not stored.
	Read(ctx context.Context, workspace, ref string) (json.RawMessage, error)
}

type rawLink struct {
	Applied    bool      `json:"applied"`
	EventID    string    `json:"event_id" format:"uuid"`
	PayloadRef string    `json:"payload_ref" example:"raw/20261201/6f1c2a52-8a0b-4a51-9d0e-6e1f9a3d2b10" doc:"The name of the payload in the media store."`
	Path       string    `json:"path" example:"/raw/news/6f1c2a52" doc:"The path of the link on this server."`
	ExpiresAt  time.Time `json:"expires_at"`
}

type rawInput struct {
	rest.AuditedWrite
	ID   string `path:"id" format:"uuid"`
	Body *rest.Reasoned
}

func registerRaw(d *server) {
	rest.Register(d.Server, rest.Operation{
		ID: "link-raw", Method: http.MethodPost, Path: "/events/{id}/raw", Summary: "Make a link to the raw payload of an event", Answer: rawLink{}, Example: reasonExample,
		Description: "The link works once, for five minutes, without a key. The audit log records the link and its use. A payload exists for events with payload_ref.",
	}, func(ctx context.Context, in *rawInput) (rest.Reply, error) {
		reply, err := d.Do(ctx, in.AuditedWrite, rest.Change{Reason: why(in.Body), Subject: in.ID}, func(ctx context.Context, a rest.OperatorAction) (rest.Written, error) {
			return d.db.CreateRawLink(ctx, a, in.ID, NewRawToken())
		})
		if err != nil {
			return reply, err
		}
		var link struct {
			rawLink

			Token string `json:"token"`
		}
		if err := json.Unmarshal(reply.Body, &link); err != nil {
			return reply, err
		}
		link.Path = "/raw/" + url.PathEscape(rest.Caller(ctx).WorkspaceID) + "/" + link.Token
		reply.Body, err = json.Marshal(link.rawLink)
		return reply, err
	})
}

// NewRawToken returns the token of a new link to a raw payload.
func NewRawToken() string {
	token := make([]byte, 32)
	_, _ = rand.Read(token) // it never fails
	return hex.EncodeToString(token)
}

// rawReader serves the links to raw payloads.
type rawReader struct {
	db  Store
	raw RawPayloads
	log *slog.Logger
}

func (h rawReader) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet { // a HEAD request must not use up the link
		w.Header().Set("Allow", http.MethodGet)
		problem.Write(w, problem.WrongMethod.Says("The method must be GET."))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), rawTimeout)
	defer cancel()
	workspace := r.PathValue("workspace_id")
	payload, refusal := h.read(ctx, workspace, r.PathValue("token"))
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if refusal != nil {
		problem.Write(w, refusal)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Disposition", `attachment; filename="raw.json"`)
	// The caller may be gone. There is no other way to report that.
	_, _ = w.Write(payload) //nolint:gosec // a browser stores an attachment of type JSON and shows nothing of it
}

func (h rawReader) read(ctx context.Context, workspace, token string) (json.RawMessage, *problem.Problem) {
	ref, err := h.db.UseRawLink(ctx, workspace, token)
	if errors.Is(err, worker.ErrRefused) || err == nil && ref == "" {
		return nil, problem.NotFound.Says("This link is unknown, used or expired. Make a new one with POST /api/v1/events/{id}/raw.")
	}
	if err != nil {
		h.log.Error("raw.unavailable", "workspace_id", workspace, "error", err)
		return nil, problem.Unavailable.Says("The database does not answer now. Open the link again.")
	}
	payload, err := h.raw.Read(ctx, workspace, ref)
	if errors.Is(err, autopost.ErrNoOrigin) {
		return nil, problem.Gone.Says("The raw payload is not in the media store: its retention is over, or it could not be stored after the call.")
	}
	if err != nil {
		h.log.Error("raw.unavailable", "workspace_id", workspace, "payload_ref", ref, "error", err)
		return nil, problem.Unavailable.Says("The raw payload cannot be read now. Make a new link later; the log of the daemon has the reason.")
	}
	return payload, nil
}
