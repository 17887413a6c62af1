package autopost

import (
	"context"
	"errors"
	"time"
)

// ErrNoCredential means that a credential key is not bound to a secret.
var ErrNoCredential = errors.New("no such credential")

// RenewalError means that a credential could not be renewed. Failure is the answer of the platform, or the reason
// why it was not asked.
type RenewalError struct{ Failure Error }

// Error implements error.
func (e *RenewalError) Error() string { return "renew the credential: " + e.Failure.String() }

// Renewal is how a credential can be renewed.
type Renewal int

// The kinds of renewal.
const (
	// RenewNever: the credential is valid until the platform rejects it; then a person must replace it.
	RenewNever Renewal = iota
	// RenewLater: the credential is usable, and can be renewed after it expires.
	RenewLater
	// RenewFirst: the credential must be renewed before its first use.
	RenewFirst
)

// Refresher is optional for an adapter: it renews the credentials of its platform. One daemon at a time
// renews a credential, and stores the result before it is used.
type Refresher interface {
	// Renewal returns how the secret can be renewed, without asking the platform.
	Renewal(secret Secret) Renewal
	// Refresh asks the platform once. An Error whose code states that the credential was rejected
	// (…_token_revoked, …_invalid_grant) pauses the credential's channels.
	Refresh(ctx context.Context, secret Secret) (Renewed, *Error)
}

// Renewed is the new secret of a credential.
type Renewed struct {
	Secret Secret
	// ValidFor is the lifetime of the secret; 0 if the platform does not state it.
	ValidFor time.Duration
}

// Checker is optional for an adapter: it asks the platform for the owner of a credential and for its
// rights. It changes nothing.
type Checker interface {
	// Check asks about each target (Delivery.TargetID). The Error is about the credential; a problem
	// with one target is in its Right.
	Check(ctx context.Context, secret Secret, targets []string) (CredentialInfo, *Error)
}

// CredentialInfo is the platform's information about a credential.
type CredentialInfo struct {
	// Account is the platform's name of the credential's owner.
	Account string `json:"account"`
	// Rights are in the order of the requested targets.
	Rights []Right `json:"rights"`
}

// Right states whether a credential may post to a target.
type Right struct {
	Target string `json:"target"`
	// Title is the target's name; "" if the platform does not state it.
	Title   string `json:"title,omitempty"`
	MayPost bool   `json:"may_post"`
	// Reason is why MayPost is false, and how to fix it; "" if it is true.
	Reason string `json:"reason,omitempty"`
}
