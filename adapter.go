package autopost

import (
	"context"
	"errors"
	"io"
	"time"
)

// Adapter speaks one platform's protocol. It is built without effect, keeps no
// state between calls but connections and access tokens, never touches the database and never
// repeats a request on its own: whether to try again is decided in SQL.
//
// It must be safe for concurrent use.
type Adapter interface {
	Platform() Platform
	// Send makes the calls of call.Delivery.RenderMeta.Steps that are not yet in
	// its Progress, in order, and returns what they came to. Every acknowledged step
	// but the last is given to call.Emit before the next one begins. ctx carries the
	// deadline, which lies inside the lease.
	Send(ctx context.Context, call Call) Outcome
}

// Call is all that an adapter gets to know about one attempt.
type Call struct {
	Delivery Delivery
	Secret   Secret
	Media    Materials
	// Emit records an acknowledged step durably and returns when the next step may
	// begin (its rate slot). An error means: stop, the lease or the database is
	// gone; the step stays acknowledged as far as the platform is concerned.
	Emit func(ctx context.Context, step Acknowledged) error
	// Renew says that a long step goes on: it renews the lease and gives the step
	// its time anew. To be called after each part that the platform has
	// acknowledged. An error means: stop, as with Emit.
	Renew func(ctx context.Context) error
}

// ErrNoOrigin says that the medium's content is not in the media origin (any more).
var ErrNoOrigin = errors.New("media origin is missing")

// ErrNoRoom says that what should have been kept was not, for the disk that it belongs on is full.
var ErrNoRoom = errors.New("no room left on the disk")

// Materials is what an adapter may ask about the media of its delivery.
type Materials interface {
	// Cached returns the platform's id for this content under this credential and
	// kind (a photo's id is no document's), and whether there is one still valid.
	Cached(ctx context.Context, blobRef, kind string) (fileID string, ok bool, err error)
	// Keep remembers the platform's id. A zero expiresAt means: until refused.
	Keep(ctx context.Context, blobRef, kind, fileID string, expiresAt time.Time) error
	// Forget drops an id that the platform refused.
	Forget(ctx context.Context, blobRef, kind string) error
	// Open streams the content from the media origin; ErrNoOrigin when it is gone.
	// The caller closes it.
	Open(ctx context.Context, blobRef string) (*Content, error)
}

// Content is a medium being read from the origin. It can be read from any place of it.
type Content struct {
	io.ReadSeekCloser
	// Size is exact, in bytes.
	Size int64
	// ContentType was sniffed when the content was stored.
	ContentType string
	// Filename is made of the digest and the extension of ContentType.
	Filename string
}
