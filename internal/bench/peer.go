package bench

import (
	"context"
	"time"
)

// peer is another queue that runs the same work on the same server. River is built in
// by the build tag peers.
type peer interface {
	// insert adds jobs and returns how long it took.
	insert(ctx context.Context, total int) (time.Duration, error)
	// drain completes the jobs and returns how long it took.
	drain(ctx context.Context, total int) (time.Duration, error)
	close(ctx context.Context) error
}

// noPeer is the note of a comparison in a build without the peer.
const noPeer = "River: built without the peer: run make bench"
