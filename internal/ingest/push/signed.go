package push

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"

	"autopost"
	"autopost/internal/problem"
)

// maxSigned limits a signed body in bytes. The limit of the endpoint may be smaller, but the body must be read before
// the signature proves the endpoint.
const maxSigned = 16 << 20

// SignedEndpoint is an endpoint found by its name, which proves nothing.
type SignedEndpoint struct {
	Endpoint

	// AuthRefs name the valid signing keys, the newest first.
	AuthRefs []string `json:"auth_refs"`
	// Bound has what Keys needs to open each of them. It comes with the endpoint, so that a known name costs no
	// further query.
	Bound []json.RawMessage `json:"bound"`
	// SkewSeconds is how far the clock of the database is ahead of the timestamp. Fresh means that it is within
	// ToleranceSeconds.
	SkewSeconds      int64 `json:"skew_seconds"`
	ToleranceSeconds int64 `json:"tolerance_seconds"`
	Fresh            bool  `json:"fresh"`
}

// Keys opens signing keys with what the database has returned about them.
type Keys interface {
	OpenBound(workspace, authRef string, bound json.RawMessage) (autopost.Secret, error)
}

// OpenKeys returns the signing keys of an endpoint. A key that cannot be opened is logged and left out; the error
// means that no key is left.
func (e *SignedEndpoint) OpenKeys(keys Keys, log *slog.Logger) ([]autopost.Secret, error) {
	var opened []autopost.Secret
	for i, ref := range e.AuthRefs {
		key, err := keys.OpenBound(e.WorkspaceID, ref, e.Bound[i])
		if err != nil {
			log.Error("push.signing_key_unavailable", "workspace_id", e.WorkspaceID, "endpoint_id", e.EndpointID, "auth_ref", ref, "error", err)
			continue
		}
		opened = append(opened, key)
	}
	if len(opened) == 0 {
		return nil, fmt.Errorf("endpoint ws=%s endpoint=%s has no usable signing key: bind its signing_ref to a credential of platform webhook", e.WorkspaceID, e.EndpointID)
	}
	return opened, nil
}

// Signed serves POST /hooks/push/{workspace_id}/{endpoint_id}. It is safe for
// concurrent use.
type Signed struct {
	receiver

	keys Keys
	// noKey is the random key for requests to unknown endpoints.
	noKey []byte
}

var _ http.Handler = (*Signed)(nil)

// NewSigned makes the handler over the database.
func NewSigned(store Store, keys Keys, log *slog.Logger) *Signed {
	noKey := make([]byte, 32)
	_, _ = rand.Read(noKey) // never fails
	return &Signed{receiver: receiver{store: store, log: log}, keys: keys, noKey: noKey}
}

// ServeHTTP answers one push. Until the signature is verified, the answer and the cost are the same for known and
// unknown endpoints.
func (h *Signed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if refusal := form(w, r); refusal != nil {
		problem.Write(w, refusal)
		return
	}
	claim, refusal := readSignature(r.Header)
	if refusal != nil {
		problem.Write(w, refusal)
		return
	}
	endpoint, keys, err := h.resolve(r, claim)
	if err != nil {
		h.unavailable(w, err)
		return
	}
	body, refusal := h.verify(w, r, claim.verifier(keys), endpoint.MaxPayloadBytes)
	switch {
	case refusal != nil:
		problem.Write(w, refusal)
	case !endpoint.Fresh:
		problem.Write(w, skewed(endpoint))
	case len(body) > endpoint.MaxPayloadBytes:
		h.tooLarge(w, r, endpoint.Endpoint, max(r.ContentLength, int64(len(body))))
	default:
		h.enter(w, r, endpoint.Endpoint, body, func(ctx context.Context, items json.RawMessage) (json.RawMessage, error) {
			return h.store.ReceiveSignedPush(ctx, endpoint.WorkspaceID, endpoint.EndpointID, claim.id, items)
		})
	}
}

// keysHashed is the number of keys that a body is hashed with, whatever the endpoint has: two are valid in a rotation.
const keysHashed = 2

// resolve returns the endpoint and its keys. An unknown endpoint is empty. Keys that nothing matches replace missing ones,
// so that an unknown name, a missing key and a wrong signature have the same answer after the same time.
func (h *Signed) resolve(r *http.Request, claim signature) (*SignedEndpoint, [][]byte, error) {
	ctx, cancel := context.WithTimeout(r.Context(), storeTimeout)
	defer cancel()
	workspace, name := r.PathValue("workspace_id"), r.PathValue("endpoint_id")
	if !storableText(workspace) || !storableText(name) {
		return &SignedEndpoint{}, h.readKeys(&SignedEndpoint{}, nil), nil
	}
	endpoint, err := h.store.ResolveSignedEndpoint(ctx, claim.at, workspace, name)
	if err != nil {
		return nil, nil, fmt.Errorf("resolve signed endpoint: %w", err)
	}
	if endpoint == nil {
		return &SignedEndpoint{}, h.readKeys(&SignedEndpoint{}, nil), nil
	}
	secrets, err := endpoint.OpenKeys(h.keys, h.log)
	if err != nil {
		h.log.Error("push.not_verifiable", "workspace_id", endpoint.WorkspaceID, "endpoint_id", endpoint.EndpointID, "error", err)
	}
	return endpoint, h.readKeys(endpoint, secrets), nil
}

// readKeys returns keysHashed keys or more. A malformed one is logged and replaced.
func (h *Signed) readKeys(endpoint *SignedEndpoint, secrets []autopost.Secret) [][]byte {
	var keys [][]byte
	for _, secret := range secrets {
		key, err := readKey(secret)
		if err != nil {
			h.log.Error("push.not_verifiable", "workspace_id", endpoint.WorkspaceID, "endpoint_id", endpoint.EndpointID, "error", err)
			continue
		}
		keys = append(keys, key)
	}
	for len(keys) < keysHashed {
		keys = append(keys, h.noKey)
	}
	return keys
}

// verify reads and hashes the whole body. If the signature is valid, it returns at most keep+1 bytes of it.
func (h *Signed) verify(w http.ResponseWriter, r *http.Request, v *verifier, keep int) ([]byte, *problem.Problem) {
	if r.ContentLength > maxSigned {
		return nil, oversize(maxSigned)
	}
	kept := head{left: keep + 1}
	_, err := io.Copy(io.MultiWriter(v, &kept), http.MaxBytesReader(w, r.Body, maxSigned))
	switch {
	case errors.As(err, new(*http.MaxBytesError)):
		return nil, oversize(maxSigned)
	case err != nil:
		return nil, cut()
	case !v.good():
		return nil, problem.SignatureMismatch.Says("No enabled endpoint has this name, or no signature matches the request and a key of the endpoint. " +
			"Sign the id, the timestamp and the raw body, joined by full stops, with HMAC-SHA256 and the decoded key.")
	}
	return kept.Bytes(), nil
}

func skewed(e *SignedEndpoint) *problem.Problem {
	side, skew := "behind", e.SkewSeconds
	if skew < 0 {
		side, skew = "ahead of", -skew
	}
	return problem.ClockSkew.Says("%s is %d s %s the clock here, and %d s are allowed. Set the clock of the sender, and sign each attempt again.",
		headerTimestamp, skew, side, e.ToleranceSeconds)
}

// head keeps the first bytes that are written to it.
type head struct {
	bytes.Buffer

	left int
}

// Write never fails.
func (h *head) Write(p []byte) (int, error) {
	n := min(len(p), h.left)
	h.left -= n
	_, _ = h.Buffer.Write(p[:n])
	return len(p), nil
}
