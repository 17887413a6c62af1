// Package api holds what must be true of every route of the API. The routes are
// read from the daemon's own description, so that a new one is judged from its
// first day: who may call it, what it says of another workspace, what it records.
package api
