package media

import (
	"context"
	"fmt"
	"time"

	"autopost"
	"autopost/internal/failpoint"
)

// BlobKey identifies a platform's id of a medium. The id is valid only for the credential that uploaded the medium, and
// for one kind.
type BlobKey struct {
	Workspace string
	BlobRef   string
	Provider  string
	AuthRef   string
	Kind      string
}

// Blob is a platform's id of a medium.
type Blob struct {
	FileID string `json:"file_id"`
	// URL is the source URL that the platform may fetch; only without FileID.
	URL string `json:"url"`
	// ExpiresAt is the time until which the platform accepts the id; zero if unknown.
	ExpiresAt time.Time `json:"expires_at"`
}

// Blobs stores the ids that platforms gave to media.
type Blobs interface {
	// GetMediaBlob returns nil if no valid id or source URL is known.
	GetMediaBlob(ctx context.Context, key BlobKey) (*Blob, error)
	// PutMediaBlob stores an id. A blob without FileID removes the stored one.
	PutMediaBlob(ctx context.Context, key BlobKey, blob Blob) error
}

// Provider gives adapters access to the media of a delivery.
type Provider struct {
	Store *Store
	Blobs Blobs
}

// MaterialsFor returns access to the media of one delivery with its credential.
func (p Provider) MaterialsFor(d autopost.Delivery) autopost.MediaAccess {
	return &Access{
		store: p.Store,
		blobs: p.Blobs,
		scope: BlobKey{Workspace: d.WorkspaceID, Provider: string(d.Platform), AuthRef: d.AuthRef},
	}
}

// Access is access to the media of one delivery.
type Access struct {
	store *Store
	blobs Blobs
	scope BlobKey
}

func (m *Access) key(blobRef, kind string) BlobKey {
	key := m.scope
	key.BlobRef, key.Kind = blobRef, kind
	return key
}

// Cached implements autopost.MediaAccess.
func (m *Access) Cached(ctx context.Context, blobRef, kind string) (fileID string, ok bool, err error) {
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

// SourceURL implements autopost.MediaAccess.
func (m *Access) SourceURL(ctx context.Context, blobRef, kind string) (url string, ok bool, err error) {
	found, err := m.blobs.GetMediaBlob(ctx, m.key(blobRef, kind))
	if err != nil {
		return "", false, fmt.Errorf("look up the source of %s: %w", blobRef, err)
	}
	if found == nil || found.URL == "" || (!found.ExpiresAt.IsZero() && !time.Now().Before(found.ExpiresAt)) {
		return "", false, nil
	}
	return found.URL, true, nil
}

// Keep implements autopost.MediaAccess.
func (m *Access) Keep(ctx context.Context, blobRef, kind, fileID string, expiresAt time.Time) error {
	failpoint.Hit(failpoint.Uploaded)
	err := m.blobs.PutMediaBlob(ctx, m.key(blobRef, kind), Blob{FileID: fileID, ExpiresAt: expiresAt})
	if err != nil {
		return fmt.Errorf("keep %s of %s: %w", kind, blobRef, err)
	}
	return nil
}

// Forget implements autopost.MediaAccess.
func (m *Access) Forget(ctx context.Context, blobRef, kind string) error {
	if err := m.blobs.PutMediaBlob(ctx, m.key(blobRef, kind), Blob{}); err != nil {
		return fmt.Errorf("forget %s of %s: %w", kind, blobRef, err)
	}
	return nil
}

// Open implements autopost.MediaAccess.
func (m *Access) Open(ctx context.Context, blobRef string) (*autopost.Content, error) {
	content, err := m.store.Open(ctx, blobRef)
	if err != nil {
		return nil, err
	}
	content.ReadSeekCloser = failpoint.Halfway(failpoint.HalfSent, content.ReadSeekCloser, content.Size)
	return content, nil
}

var _ autopost.MediaAccess = (*Access)(nil)
