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
	"time"

	"autopost"
)

// maxSigned bounds a signed body whose endpoint may take less: it has to be read
// before anybody knows whose it is.
const maxSigned = 16 << 20

// SignedEndpoint is an endpoint found by its name, which proves nothing.
type SignedEndpoint struct {
	Endpoint

	// Keys are those that are good now; one of them must have signed.
	Keys []autopost.Secret
	// Skew is how far the database's clock is past the timestamp; Fresh says whether
	// that is within Tolerance.
	Skew, Tolerance time.Duration
	Fresh           bool
}

// SignedStore is what the door for signatures needs of the database.
type SignedStore interface {
	Guard
	// ResolveSignedEndpoint finds the enabled endpoint of that name that takes signed
	// requests; nil when there is none. None of its keys being at hand is an error.
	ResolveSignedEndpoint(ctx context.Context, signedAt time.Time, workspace, endpoint string) (*SignedEndpoint, error)
	// ReceiveSignedPush takes an array of posts in one transaction, once for each
	// webhookID, and answers as ReceivePush does.
	ReceiveSignedPush(ctx context.Context, workspace, endpoint, webhookID string, items json.RawMessage) (json.RawMessage, error)
}

// Signed serves POST /hooks/push/{workspace_id}/{endpoint_id}. It is safe for
// concurrent use.
type Signed struct {
	door

	store SignedStore
	// nobody is the key by which the requests of endpoints that are not there are judged.
	nobody []byte
}

var _ http.Handler = (*Signed)(nil)

// NewSigned makes the handler over the database.
func NewSigned(store SignedStore, log *slog.Logger) *Signed {
	nobody := make([]byte, 32)
	_, _ = rand.Read(nobody) // never fails
	return &Signed{door: door{guard: store, log: log}, store: store, nobody: nobody}
}

// ServeHTTP answers one push. Until its signature is found good, a request is
// answered and costs the same whether its endpoint is there or not.
func (h *Signed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if refusal := form(w, r); refusal != nil {
		writeProblem(w, refusal)
		return
	}
	claim, refusal := readSignature(r.Header)
	if refusal != nil {
		writeProblem(w, refusal)
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
		writeProblem(w, refusal)
	case !endpoint.Fresh:
		writeProblem(w, skewed(endpoint))
	case len(body) > endpoint.MaxPayloadBytes:
		h.tooLarge(w, r, endpoint.Endpoint, max(r.ContentLength, int64(len(body))))
	default:
		h.enter(w, r, endpoint.Endpoint, body, func(ctx context.Context, items json.RawMessage) (json.RawMessage, error) {
			return h.store.ReceiveSignedPush(ctx, endpoint.WorkspaceID, endpoint.EndpointID, claim.id, items)
		})
	}
}

// resolve returns the endpoint and its keys, or one that nobody has the key of.
func (h *Signed) resolve(r *http.Request, claim signature) (*SignedEndpoint, [][]byte, error) {
	ctx, cancel := context.WithTimeout(r.Context(), storeTimeout)
	defer cancel()
	workspace, name := r.PathValue("workspace_id"), r.PathValue("endpoint_id")
	if !storableText(workspace) || !storableText(name) {
		return &SignedEndpoint{}, [][]byte{h.nobody}, nil
	}
	endpoint, err := h.store.ResolveSignedEndpoint(ctx, claim.at, workspace, name)
	if err != nil {
		return nil, nil, fmt.Errorf("resolve signed endpoint: %w", err)
	}
	if endpoint == nil {
		return &SignedEndpoint{}, [][]byte{h.nobody}, nil
	}
	var keys [][]byte
	for _, secret := range endpoint.Keys {
		key, keyErr := readKey(secret)
		if keyErr != nil {
			err = fmt.Errorf("key of endpoint ws=%s endpoint=%s: %w", endpoint.WorkspaceID, endpoint.EndpointID, keyErr)
			continue
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 && err != nil {
		return nil, nil, err
	}
	return endpoint, keys, nil
}

// verify reads the body and returns up to a byte more than keep of it, once its
// signature is found good. All of it is hashed, before anything looks into it.
func (h *Signed) verify(w http.ResponseWriter, r *http.Request, v *verifier, keep int) ([]byte, *problem) {
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
		return nil, signatureMismatch.says("There is no enabled endpoint of this name, or no signature is that of this request by a key of it. " +
			"Sign the id, the timestamp and the raw body, joined by full stops, with HMAC-SHA256 and the decoded key.")
	}
	return kept.Bytes(), nil
}

func skewed(e *SignedEndpoint) *problem {
	side, skew := "behind", e.Skew
	if skew < 0 {
		side, skew = "ahead of", -skew
	}
	return clockSkew.says("%s is %d s %s the clock here, and %d s are allowed. Set the sender's clock, and sign each attempt anew.",
		headerTimestamp, int64(skew.Seconds()), side, int64(e.Tolerance.Seconds()))
}

// head keeps the beginning of what is written to it.
type head struct {
	bytes.Buffer

	left int
}

// Write keeps what it may; it never fails.
func (h *head) Write(p []byte) (int, error) {
	n := min(len(p), h.left)
	h.left -= n
	_, _ = h.Buffer.Write(p[:n])
	return len(p), nil
}
