package autopost

import "context"

// ChangeKind is the kind of a post change.
type ChangeKind string

// The kinds of post changes.
const (
	ChangeEdit   ChangeKind = "edit"
	ChangeDelete ChangeKind = "delete"
	ChangePin    ChangeKind = "pin"
	ChangeUnpin  ChangeKind = "unpin"
)

// PostChange is a claimed post change: a row of autopost.claimed_act, leased to this daemon under the
// claim token of its Delivery.
type PostChange struct {
	ActID string
	Kind  ChangeKind
	// Delivery is the post as it was sent; RenderMeta.Progress has the platform's ids of its messages.
	// For an edit, RenderedText and the rest of RenderMeta are the new content, with the same steps.
	// Attempt, ClaimToken and LeaseUntil are those of the change.
	Delivery
}

// An adapter implements the following interfaces if its platform supports the change. Each method
// returns nil if the change is in effect, also if it was in effect before: a repeated call must
// succeed, and deleting a missing message succeeds. Failures are classified like those of Send.
// call.Emit and call.Renew are nil.

// Editor changes the text of a post.
type Editor interface {
	Edit(ctx context.Context, call Call) *Error
}

// Deleter deletes all messages of a post.
type Deleter interface {
	Delete(ctx context.Context, call Call) *Error
}

// Pinner pins a post at the top of its chat.
type Pinner interface {
	Pin(ctx context.Context, call Call) *Error
	Unpin(ctx context.Context, call Call) *Error
}
