package media

import (
	"context"
	"fmt"
	"time"

	"autopost"
	"autopost/internal/crash"
)

// BlobKey names what one credential of one platform calls a medium. A file id
// is valid only for the credential that made it, and for one kind.
type BlobKey struct {
	Workspace string
	BlobRef   string
	Provider  string
	AuthRef   string
	Kind      string
}

// Blob is a platform's id of a medium.
type Blob struct {
	FileID string
	// ExpiresAt is when the platform forgets the id; zero means: until refused.
	ExpiresAt time.Time
}

// Blobs remembers the platforms' ids. GetMediaBlob returns nil when there is none.
type Blobs interface {
	GetMediaBlob(ctx context.Context, key BlobKey) (*Blob, error)
	PutMediaBlob(ctx context.Context, key BlobKey, blob Blob) error
	ForgetMediaBlob(ctx context.Context, key BlobKey) error
}

// Library gives each delivery its materials.
type Library struct {
	Store *Store
	Blobs Blobs
}

// MaterialsFor returns the media of one delivery, as its credential sees them.
func (l Library) MaterialsFor(d autopost.Delivery) autopost.Materials {
	return &Materials{
		store: l.Store,
		blobs: l.Blobs,
		scope: BlobKey{Workspace: d.WorkspaceID, Provider: string(d.Platform), AuthRef: d.AuthRef},
	}
}

// Materials are the media of one delivery.
type Materials struct {
	store *Store
	blobs Blobs
	scope BlobKey
}

func (m *Materials) key(blobRef, kind string) BlobKey {
	key := m.scope
	key.BlobRef, key.Kind = blobRef, kind
	return key
}

// Cached implements autopost.Materials.
func (m *Materials) Cached(ctx context.Context, blobRef, kind string) (fileID string, ok bool, err error) {
	found, err := m.blobs.GetMediaBlob(ctx, m.key(blobRef, kind))
	if err != nil {
		return "", false, fmt.Errorf("look up %s of %s: %w", kind, blobRef, err)
	}
	if found == nil || found.FileID == "" {
		return "", false, nil
	}
	if !found.ExpiresAt.IsZero() && !time.Now().Before(found.ExpiresAt) {
		return "", false, nil
	}
	return found.FileID, true, nil
}

// Keep implements autopost.Materials.
func (m *Materials) Keep(ctx context.Context, blobRef, kind, fileID string, expiresAt time.Time) error {
	crash.Here(crash.Uploaded)
	err := m.blobs.PutMediaBlob(ctx, m.key(blobRef, kind), Blob{FileID: fileID, ExpiresAt: expiresAt})
	if err != nil {
		return fmt.Errorf("keep %s of %s: %w", kind, blobRef, err)
	}
	return nil
}

// Forget implements autopost.Materials.
func (m *Materials) Forget(ctx context.Context, blobRef, kind string) error {
	if err := m.blobs.ForgetMediaBlob(ctx, m.key(blobRef, kind)); err != nil {
		return fmt.Errorf("forget %s of %s: %w", kind, blobRef, err)
	}
	return nil
}

// Open implements autopost.Materials.
func (m *Materials) Open(ctx context.Context, blobRef string) (*autopost.Content, error) {
	content, err := m.store.Open(ctx, blobRef)
	if err != nil {
		return nil, err
	}
	content.ReadSeekCloser = crash.Halfway(crash.HalfSent, content.ReadSeekCloser, content.Size)
	return content, nil
}

var _ autopost.Materials = (*Materials)(nil)
