package autopost

import (
	"context"
	"time"
)

// Renewal says what can be done for a credential before, or after, it expires.
type Renewal int

// The kinds of renewal.
const (
	// RenewNever: it is good until it is refused, and then people must act.
	RenewNever Renewal = iota
	// RenewLater: it can be used, and renewed when it has expired.
	RenewLater
	// RenewFirst: it cannot be used before it was renewed.
	RenewFirst
)

// Refresher is what an adapter may be besides: it renews the credentials of its
// platform. One daemon at a time renews a credential; what it got is stored before it is used.
type Refresher interface {
	// Renewal reads the secret's form; it asks nobody.
	Renewal(secret Secret) Renewal
	// Refresh asks the platform once. An Error with a code that says that the
	// credential is refused (…_token_revoked, …_invalid_grant) pauses its channels.
	Refresh(ctx context.Context, secret Secret) (Renewed, *Error)
}

// Renewed is a secret in place of another.
type Renewed struct {
	Secret Secret
	// ValidFor is how long it is good for; 0 = the platform did not say.
	ValidFor time.Duration
}

// Checker is what an adapter may be besides: it asks the platform whose a
// credential is and where it may post. It changes nothing there.
type Checker interface {
	// Check asks about the targets (Delivery.TargetID) one after the other. The
	// Error is of the credential; what is wrong with a target stands in its Right.
	Check(ctx context.Context, secret Secret, targets []string) (Standing, *Error)
}

// Standing is what a platform says of a credential.
type Standing struct {
	// Account is the name by which the platform knows its holder.
	Account string `json:"account"`
	// Rights are in the order of the targets asked about.
	Rights []Right `json:"rights"`
}

// Right says whether a credential may post to a target.
type Right struct {
	Target string `json:"target"`
	// Title is the target's own name; "" when the platform does not tell.
	Title   string `json:"title,omitempty"`
	MayPost bool   `json:"may_post"`
	// Reason says why not, and what to do about it; "" when it may.
	Reason string `json:"reason,omitempty"`
}
