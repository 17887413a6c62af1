package bench

import (
	"context"
	"time"
)

// peer is another queue that runs the same work on the same server. River is built in
// by the build tag peers.
type peer interface {
	// insert adds jobs.
	insert(ctx context.Context, total int) (took, error)
	// drain completes the jobs.
	drain(ctx context.Context, total int) (took, error)
	close(ctx context.Context) error
}

// took is the duration of some work, and the processor time of the database's backends in it.
type took struct {
	wall, processor time.Duration
}

// noPeer is the note of a comparison in a build without the peer.
const noPeer = "River: built without the peer: run make bench"
