package media

import (
	"context"
	"errors"
	"fmt"
	"io"

	"autopost"
)

// ErrBusy says that the object was just being taken away: storing the content once
// more succeeds a little later.
var ErrBusy = errors.New("the content was just being removed; store it again in a moment")

// Registered is what the database says to content that stands in the origin.
type Registered struct {
	Applied bool
	// Reason is "too_large" or "being_removed" when it was not applied.
	Reason string
	// Limit is the largest size in bytes, when that is the reason.
	Limit int64
}

// Rows are the rows of autopost.media_origin: who holds what.
type Rows interface {
	PutMediaOrigin(ctx context.Context, workspace string, origin Origin) (Registered, error)
	// GetMediaOrigin reports whether the workspace holds blobRef.
	GetMediaOrigin(ctx context.Context, workspace, blobRef string) (held bool, err error)
}

// Depository keeps the origin and its rows together.
type Depository struct {
	Store *Store
	Rows  Rows
	// Limits are the largest sizes taken.
	Limits Limits
}

// Put streams content into the origin and registers it for the workspace. An empty
// kind is told from the content. Putting the same content again is harmless. A
// *Rejection says why it cannot be taken; ErrBusy, that the same bytes may be sent
// again in a moment; any other error is r's, the bucket's or the database's.
func (d *Depository) Put(ctx context.Context, workspace string, r io.Reader, kind autopost.MediaKind) (Origin, error) {
	origin, err := d.Store.Put(ctx, r, kind, d.Limits)
	if err != nil {
		return Origin{}, err
	}
	return origin, d.Register(ctx, workspace, origin)
}

// Register gives the workspace a row of content that Store.Put has stored. Whoever
// removes content does so where no row is; a removal that ended between the object
// and its row is found by looking for the object once more.
func (d *Depository) Register(ctx context.Context, workspace string, origin Origin) error {
	answer, err := d.Rows.PutMediaOrigin(ctx, workspace, origin)
	switch {
	case err != nil:
		return err
	case answer.Reason == "too_large":
		return tooLarge(origin.Kind, answer.Limit)
	case !answer.Applied:
		return fmt.Errorf("register %s: %w", origin.BlobRef, ErrBusy)
	}
	whole, err := d.Store.Has(ctx, origin.BlobRef, origin.SizeBytes)
	if err == nil && !whole {
		err = fmt.Errorf("register %s: %w", origin.BlobRef, ErrBusy)
	}
	return err
}

// Open streams what the workspace holds under blobRef, with its exact size. It
// returns autopost.ErrNoOrigin when the workspace does not hold it, whatever others
// do. The caller closes it.
func (d *Depository) Open(ctx context.Context, workspace, blobRef string) (*autopost.Content, error) {
	if _, err := parseRef(blobRef); err != nil {
		return nil, err
	}
	held, err := d.Rows.GetMediaOrigin(ctx, workspace, blobRef)
	if err != nil {
		return nil, err
	}
	if !held {
		return nil, fmt.Errorf("open %s: %w", blobRef, autopost.ErrNoOrigin)
	}
	return d.Store.Open(ctx, blobRef)
}
