//go:build !peers

package bench

import "context"

// openPeer returns nil: this build does not contain River.
func (*server) openPeer(context.Context) (peer, error) { return nil, nil }
