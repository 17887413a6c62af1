// Package adapter contains the shared parts of adapters: one HTTP exchange with a known or unknown
// outcome, the default error classes, redaction, uploads with an exact length, and the loop over a
// delivery's steps.
//
// An adapter translates one protocol. It sends each unacknowledged step once and reports the result.
// The database decides about retries, pauses and limits.
package adapter
