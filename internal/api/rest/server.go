// Package rest holds what all operations of the API share: keys and roles, the limits of requests, pages of lists,
// problems, and writes with an Idempotency-Key or an audit record.
//
// It decides nothing about posts. An operation calls one function of the database for the workspace of the key.
package rest

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// storeTimeout limits each call to the database.
const storeTimeout = 10 * time.Second

// Store is what this package needs from the database.
type Store interface {
	// ResolveAPIKey returns the valid key with this lower-case hexadecimal SHA-256; nil if there is none.
	ResolveAPIKey(ctx context.Context, keyHash string) (*Key, error)
	// TouchAPIKey records the use of a key.
	TouchAPIKey(ctx context.Context, workspace, keyID string) error
	// BeginRequest returns the state of a request: fresh, replayed with its answer, other_request or in_progress.
	BeginRequest(ctx context.Context, workspace string, once OnceKey) (Written, error)
	// List returns at most q.Limit rows, each a JSON object.
	List(ctx context.Context, q Query) ([]json.RawMessage, error)
}

// Query selects rows of a list.
type Query struct {
	// Function is the SQL function of the list.
	Function  string
	Workspace string
	// Kind is the kind of configuration for list_configuration; "" for other lists.
	Kind string
	// Filter marshals to a JSON object; nil selects all rows.
	Filter any
	Limit  int
}

// OperatorAction names the operator of a manual change and the reason. Both are required. A dry run changes nothing
// and returns the same answer as the change.
type OperatorAction struct {
	Workspace string
	Operator  string
	Reason    string
	DryRun    bool
	// Once identifies the request of the change.
	Once OnceKey
}

// OnceKey identifies a request that is done once. The zero value identifies none.
type OnceKey struct {
	// KeyID is the API key of the caller or the person of a session, Key the Idempotency-Key.
	KeyID, Key string
	// RequestHash is the SHA-256 of the request in lower-case hexadecimal.
	RequestHash string
}

// Written is the answer to a write.
type Written struct {
	// Status is done, replayed (the Answer is that of the first request), other_request (the key belongs to another
	// request) or in_progress. The last two have no Answer.
	Status string          `json:"status"`
	Answer json.RawMessage `json:"answer"`
}

// Server runs the operations of the API.
type Server struct {
	API   huma.API
	Store Store
	// Sessions authenticates people; nil accepts keys only.
	Sessions Sessions
	Log      *slog.Logger
}

// ask runs one call to the database within its timeout.
func ask[T any](ctx context.Context, d *Server, do func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	answer, err := do(ctx)
	if err != nil {
		return answer, d.problemOf(ctx, err)
	}
	return answer, nil
}

// Fault returns the problem of an error of the database.
func (d *Server) Fault(ctx context.Context, err error) error { return d.problemOf(ctx, err) }

// Rows returns rows of a list in the workspace of the caller.
func (d *Server) Rows(ctx context.Context, q Query) ([]json.RawMessage, error) {
	q.Workspace = Caller(ctx).WorkspaceID
	return ask(ctx, d, func(ctx context.Context) ([]json.RawMessage, error) { return d.Store.List(ctx, q) })
}

// Get replies with the answer of read for the workspace of the caller. notFound is the message if there is no answer.
func (d *Server) Get(ctx context.Context, notFound string, read func(ctx context.Context, workspace string) (json.RawMessage, error)) (Reply, error) {
	answer, err := ask(ctx, d, func(ctx context.Context) (json.RawMessage, error) { return read(ctx, Caller(ctx).WorkspaceID) })
	if err == nil && answer == nil {
		err = NotFound(notFound)
	}
	return Reply{Body: answer}, err
}

// One replies with the first row that q selects. notFound is the message if there is no row.
func (d *Server) One(ctx context.Context, notFound string, q Query) (Reply, error) {
	q.Limit = 1
	rows, err := d.Rows(ctx, q)
	if err == nil && len(rows) == 0 {
		err = NotFound(notFound)
	}
	if err != nil {
		return Reply{}, err
	}
	return Reply{Body: rows[0]}, nil
}
