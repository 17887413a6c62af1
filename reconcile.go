package autopost

import (
	"context"
	"encoding/json"
	"time"
)

// Reconciler is optional for an adapter: after an unknown outcome it asks the platform whether the post
// exists.
type Reconciler interface {
	// Reconcile looks for the first unacknowledged step of the call. It changes nothing on the
	// platform. Found means that the whole delivery exists. If later steps are missing, Reconcile
	// passes the found step to call.Emit, and Send makes the rest.
	Reconcile(ctx context.Context, call Call) Verdict
	// SettleTime is the time after a call in which the platform may not yet show the result.
	SettleTime() time.Duration
}

// Searcher is optional for an adapter: it looks for a post by its content if nothing is known about a call.
type Searcher interface {
	// Search looks for the post of a delivery that was not called among the newest posts of its target.
	// It changes nothing on the platform. The time is that of the found post.
	Search(ctx context.Context, call Call) (Verdict, time.Time)
}

// Verdict is the platform's information about a post. At most one of Found and Absent is set. If
// neither is set, the result is unclear and Error states the reason.
type Verdict struct {
	Found  bool
	Absent bool
	// ProviderMessageID and Raw are those of an [Outcome]; set if Found.
	ProviderMessageID string
	Raw               json.RawMessage
	Error             *Error
	// Used counts the priced uses of the platform by the request.
	Used Used
}
