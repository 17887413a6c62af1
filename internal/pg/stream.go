package pg

import (
	"context"
	"encoding/json"
	"fmt"

	"autopost/internal/api/stream"
)

// StreamItems returns what changed since position in the workspaces of open streams; position nil begins now.
func (s *Store) StreamItems(ctx context.Context, watched []stream.Watched, position json.RawMessage) (stream.Read, error) {
	raw, err := call[json.RawMessage](ctx, s, `select autopost.stream_items($1, $2)`, watched, position)
	if err != nil {
		return stream.Read{}, fmt.Errorf("stream items: %w", err)
	}
	var read stream.Read
	if err := json.Unmarshal(raw, &read); err != nil {
		return stream.Read{}, fmt.Errorf("stream items: decode: %w", err)
	}
	return read, nil
}

var _ stream.Store = (*Store)(nil)
