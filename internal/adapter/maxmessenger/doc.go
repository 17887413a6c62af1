// Package maxmessenger is the adapter for the bot API of the MAX messenger (https://dev.max.ru/docs-api).
// It serves the platform "max"; max is a builtin of Go.
//
// A post is one POST /messages. Each medium is uploaded before, in two calls: one asks for a slot, one
// sends the bytes to another host. The message names media by tokens, which are reused. No call ends an
// upload: MAX processes it and answers attachment.not.ready to posts that come too early. A failed
// upload is definite, for nothing was posted.
//
// After an unknown outcome, Reconcile reads the messages of the chat.
package maxmessenger
