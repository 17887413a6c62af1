// Package door is what every operation of the API passes: who calls, whether the
// key may, how requests and answers are made, and how a write that is repeated is
// told the first answer again.
//
// It decides nothing about posts: an operation is a function of the database, asked
// for the workspace of the caller's key.
package door

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// storeTimeout bounds each call to the database.
const storeTimeout = 10 * time.Second

// ErrDefect marks an error of the store's that no repeat can cure. An error without
// it, and without an *autopost.ArgumentError, is taken for a database that is away.
var ErrDefect = errors.New("defect")

// Keys resolves API keys.
type Keys interface {
	// ResolveAPIKey finds the valid key with this lower-case hexadecimal SHA-256; nil
	// when there is none.
	ResolveAPIKey(ctx context.Context, keyHash string) (*Key, error)
	// TouchAPIKey notes that a key is used.
	TouchAPIKey(ctx context.Context, workspace, keyID string) error
}

// Records asks the functions of the database that the operations name.
type Records interface {
	// List returns at most limit rows, each a JSON object.
	List(ctx context.Context, function, workspace, kind string, filter map[string]any, limit int) ([]json.RawMessage, error)
	// Look returns one answer; nil when there is none.
	Look(ctx context.Context, function, workspace string, args map[string]any) (json.RawMessage, error)
	// Write does something once.
	Write(ctx context.Context, w Write) (Written, error)
}

// Write is an act, and the request that it is done for.
type Write struct {
	Workspace string
	Function  string
	Operator  string
	Reason    string
	DryRun    bool
	// KeyID, OnceKey and RequestHash name the request; OnceKey is empty for one that is not kept.
	KeyID       string
	OnceKey     string
	RequestHash string
	Args        map[string]any
}

// Written is what became of a write.
type Written struct {
	// Status is done, replayed, other_request or in_progress.
	Status string
	Answer json.RawMessage
}

// Door is the way to the operations of one API.
type Door struct {
	API     huma.API
	Keys    Keys
	Records Records
	Log     *slog.Logger
}

// ask runs one question to the database within its time.
func ask[T any](ctx context.Context, d *Door, operation string, question func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	answer, err := question(ctx)
	if err != nil {
		return answer, d.problemOf(ctx, operation, err)
	}
	return answer, nil
}

// Rows asks a reading function, see Records.
func (d *Door) Rows(ctx context.Context, function, kind string, filter map[string]any, limit int) ([]json.RawMessage, error) {
	return ask(ctx, d, function, func(ctx context.Context) ([]json.RawMessage, error) {
		return d.Records.List(ctx, function, Caller(ctx).WorkspaceID, kind, filter, limit)
	})
}

// Look asks for one answer, see Records; absent says what is missing when there is none.
func (d *Door) Look(ctx context.Context, function, absent string, args map[string]any) (Reply, error) {
	answer, err := ask(ctx, d, function, func(ctx context.Context) (json.RawMessage, error) {
		return d.Records.Look(ctx, function, Caller(ctx).WorkspaceID, args)
	})
	if err == nil && answer == nil {
		err = NotFound(absent)
	}
	return Reply{Body: answer}, err
}

// One is the only row that a reading function has for a filter; absent says what is missing when there is none.
func (d *Door) One(ctx context.Context, function, kind, absent string, filter map[string]any) (Reply, error) {
	rows, err := d.Rows(ctx, function, kind, filter, 1)
	if err == nil && len(rows) == 0 {
		err = NotFound(absent)
	}
	if err != nil {
		return Reply{}, err
	}
	return Reply{Body: rows[0]}, nil
}
