package autopost

import (
	"context"
	"errors"
	"io"
	"time"
)

// Adapter implements the protocol of one platform. Construction has no effect. An adapter keeps only
// connections and access tokens between calls, never accesses the database, and never retries: the
// database decides about retries.
//
// It must be safe for concurrent use.
type Adapter interface {
	Platform() Platform
	// Send makes the calls of call.Delivery.RenderMeta.Steps that are not yet in its Progress, in
	// order, and returns the outcome. It passes every acknowledged step except the last to call.Emit
	// before the next step starts. ctx has the deadline, which is before the end of the lease.
	Send(ctx context.Context, call Call) Outcome
}

// Call is the input of one attempt.
type Call struct {
	Delivery Delivery
	Secret   Secret
	Media    MediaAccess
	// Emit records an acknowledged step durably and returns when the next step may start (its rate
	// slot). After an error the adapter must stop: the lease is lost or the database is unavailable.
	// The step stays acknowledged by the platform.
	Emit func(ctx context.Context, step Acknowledged) error
	// Renew renews the lease and the time limit of a long step. Call it after each part that the
	// platform acknowledged. After an error the adapter must stop, as with Emit.
	Renew func(ctx context.Context) error
}

// ErrNoOrigin means that the content of the medium is not in the media store.
var ErrNoOrigin = errors.New("media origin is missing")

// ErrNoSpace means that something was not stored because the disk is full.
var ErrNoSpace = errors.New("no space left on the disk")

// MediaAccess gives an adapter access to the media of one delivery.
type MediaAccess interface {
	// Cached returns the platform's id of the content for this credential and kind; ok is false if
	// there is no valid id. A platform may use different ids for a photo and a document.
	Cached(ctx context.Context, blobRef, kind string) (fileID string, ok bool, err error)
	// SourceURL returns the address from which the platform may fetch the content itself; ok is false if
	// the platform's upload policy requires an upload, or if the address is unknown or has expired.
	SourceURL(ctx context.Context, blobRef, kind string) (url string, ok bool, err error)
	// Keep stores the platform's id. A zero expiresAt means that it is valid until the platform rejects
	// it.
	Keep(ctx context.Context, blobRef, kind, fileID string, expiresAt time.Time) error
	// Forget removes an id or a source URL that the platform rejected.
	Forget(ctx context.Context, blobRef, kind string) error
	// Open opens the content in the media store. The caller closes it. The error is ErrNoOrigin if the
	// content is gone.
	Open(ctx context.Context, blobRef string) (*Content, error)
}

// Content is an open medium in the media store.
type Content struct {
	io.ReadSeekCloser
	// Size is exact, in bytes.
	Size int64
	// ContentType was detected from the content when it was stored.
	ContentType string
	// Filename is the name in the post, else the digest with the extension of ContentType.
	Filename string
}
