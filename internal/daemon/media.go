package daemon

import (
	"context"
	"fmt"

	"autopost/internal/config"
	"autopost/internal/media"
	"autopost/internal/pg"
)

// OpenMedia opens the configured media store.
func OpenMedia(ctx context.Context, cfg config.Config) (*media.Store, error) {
	bucket, err := media.OpenStore(ctx, cfg.BlobURL)
	if err != nil {
		return nil, fmt.Errorf("AUTOPOST_BLOB_URL: %w", err)
	}
	return bucket, nil
}

// NewUploads returns the store for uploads of workspaces, with the configured limits.
func NewUploads(cfg config.Config, store *pg.Store, bucket *media.Store) *media.WorkspaceStore {
	return &media.WorkspaceStore{Store: bucket, Rows: store, Limits: mediaLimits(cfg)}
}
