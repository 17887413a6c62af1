package autopost

import "context"

// ActKind is what may be done to a post that was sent.
type ActKind string

// The kinds of acts.
const (
	ActEdit   ActKind = "edit"
	ActDelete ActKind = "delete"
	ActPin    ActKind = "pin"
	ActUnpin  ActKind = "unpin"
)

// Act is one claimed act: a row of autopost.claimed_act, leased to this daemon under the
// claim token of its Delivery.
type Act struct {
	ActID string
	Kind  ActKind
	// Delivery is the post as it was sent, with the platform's id of each of its messages in
	// RenderMeta.Progress. Of an edit, RenderedText and the rest of RenderMeta are what it is to
	// say, in the same steps. Attempt, ClaimToken and LeaseUntil are the act's.
	Delivery
}

// An adapter implements what its platform allows of the following. Each method makes the
// change that is asked for and returns nil when it stands: to ask again is to ask once, so
// that a change that stands already, and a message to be deleted that is not there, are
// successes. A failure is classified as those of Send. call.Emit and call.Renew are nil.

// Editor is an adapter whose platform lets the text of a post be changed.
type Editor interface {
	Edit(ctx context.Context, call Call) *Error
}

// Deleter is an adapter whose platform lets a post be taken away: all of its messages.
type Deleter interface {
	Delete(ctx context.Context, call Call) *Error
}

// Pinner is an adapter whose platform can hold a post at the top of its chat.
type Pinner interface {
	Pin(ctx context.Context, call Call) *Error
	Unpin(ctx context.Context, call Call) *Error
}
