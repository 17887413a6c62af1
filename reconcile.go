package autopost

import (
	"context"
	"encoding/json"
	"time"
)

// Reconciler is an adapter whose platform can be asked, after an outcome that
// nobody knows, whether it has the post.
type Reconciler interface {
	// Reconcile looks for the first step of the call that is not acknowledged yet, and
	// leaves everything as it was. Found is the whole delivery; of a delivery whose next steps are
	// missing, the step that was found is given to call.Emit and the rest is left to Send.
	Reconcile(ctx context.Context, call Call) Verdict
	// SettleTime is how long after a call the platform may not show yet what it made.
	SettleTime() time.Duration
}

// Verdict is what a platform says about a post. At most one of Found and Absent is
// set; neither means that it could not be told, and Error then says why.
type Verdict struct {
	Found  bool
	Absent bool
	// ProviderMessageID and Raw are those of an [Outcome]; set when Found.
	ProviderMessageID string
	Raw               json.RawMessage
	Error             *Error
	// Used is what the look took of the platform that has a price.
	Used Used
}
