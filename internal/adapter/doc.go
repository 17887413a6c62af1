// Package adapter holds what every adapter needs to keep its contract: one HTTP
// exchange with its outcome known or unknown, the baseline of error classes,
// redaction, uploads that stream with an exact length, and the runner of a
// delivery's steps.
//
// An adapter translates; it decides nothing. It sends each step that is not yet
// acknowledged once, says what came back, and leaves retries, pauses and limits to SQL.
package adapter
