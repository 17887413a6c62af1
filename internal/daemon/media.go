package daemon

import (
	"context"
	"fmt"

	"autopost/internal/config"
	"autopost/internal/media"
)

// OpenMedia opens the configured media store.
func OpenMedia(ctx context.Context, cfg config.Config) (*media.Store, error) {
	bucket, err := media.OpenStore(ctx, cfg.BlobURL)
	if err != nil {
		return nil, fmt.Errorf("AUTOPOST_BLOB_URL: %w", err)
	}
	return bucket, nil
}
