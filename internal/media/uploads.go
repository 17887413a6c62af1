package media

import (
	"context"
	"errors"
	"fmt"
	"io"

	"autopost"
)

// ErrBusy means that the object is being removed. A later retry succeeds.
var ErrBusy = errors.New("the content is being removed; store it again later")

// Registered is the answer of put_media_origin.
type Registered struct {
	Applied bool
	// Reason is "too_large" or "being_removed" if the medium was not registered.
	Reason string
	// Limit is the largest size in bytes if the reason is too_large.
	Limit int64
}

// Rows are the media of the workspaces in the database. *pg.Store implements it.
type Rows interface {
	PutMediaOrigin(ctx context.Context, workspace string, origin Origin) (Registered, error)
	// GetMediaOrigin reports whether blobRef is registered for the workspace.
	GetMediaOrigin(ctx context.Context, workspace, blobRef string) (held bool, err error)
}

// WorkspaceStore is the media store together with the rows of the workspaces.
type WorkspaceStore struct {
	Store *Store
	Rows  Rows
	// Limits are the largest accepted sizes.
	Limits Limits
}

// Put stores the content of r and registers it for the workspace. The kind "" means the kind of the content. The same
// content may be put again. A *Rejection means that the content is refused, ErrBusy that a later retry succeeds. Other
// errors come from r, the bucket or the database.
func (d *WorkspaceStore) Put(ctx context.Context, workspace string, r io.Reader, kind autopost.MediaKind) (Origin, error) {
	origin, err := d.Store.Put(ctx, r, kind, d.Limits)
	if err != nil {
		return Origin{}, err
	}
	return origin, d.Register(ctx, workspace, origin)
}

// Register registers content for the workspace that Store.Put has stored. Objects are removed only if they have no row.
// The final check finds a removal between Put and the row.
func (d *WorkspaceStore) Register(ctx context.Context, workspace string, origin Origin) error {
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

// Open streams the content of blobRef. The error is autopost.ErrNoOrigin if it is not registered for the workspace. The
// caller closes it.
func (d *WorkspaceStore) Open(ctx context.Context, workspace, blobRef string) (*autopost.Content, error) {
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
