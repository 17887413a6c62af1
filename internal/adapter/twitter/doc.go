// Package twitter is the adapter for X, API version 2 (https://docs.x.com). The platform is named x; the
// package has the older name because x is too short for one.
//
// A post is one POST /2/tweets. A thread is several steps; each replies to the one before. Media are
// uploaded first, in chunks, and their ids are reused for a day. A failed upload is always definite.
// X has no idempotency key, and a server error leaves the outcome of a post unknown. Reconcile then
// searches the account's timeline.
package twitter
