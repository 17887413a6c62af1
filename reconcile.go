package autopost

import (
	"context"
	"encoding/json"
	"time"
)

// Reconciler is an Adapter that can find out what became of a call whose outcome is unknown.
type Reconciler interface {
	// Reconcile asks the platform whether it has the delivery's post.
	Reconcile(ctx context.Context, call Call) Verdict
	// SettleTime is how long after a call the platform's own view may lag.
	SettleTime() time.Duration
}

// Verdict is what a platform's own view says of a post. Neither Found nor Absent
// means that it cannot tell.
type Verdict struct {
	Found  bool
	Absent bool
	// ProviderMessageID is the platform's id of the post. Required when Found.
	ProviderMessageID string
	// Raw is what else is worth keeping, at most 8 KiB.
	Raw json.RawMessage
	// Error is why the platform could not be asked.
	Error *Error
}
