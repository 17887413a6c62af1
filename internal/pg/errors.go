package pg

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
)

// What our functions raise, by SQLSTATE.
var (
	// ErrArgument: a wrong argument; the message names it and the remedy.
	ErrArgument = errors.New("wrong argument")
	// ErrNotAllowed: the role may not speak for the workspace.
	ErrNotAllowed = errors.New("not allowed for this workspace")
	// ErrNoWorkspace: there is no such workspace.
	ErrNoWorkspace = errors.New("unknown workspace")
	// ErrTransition: a delivery cannot move that way.
	ErrTransition = errors.New("no allowed transition")
	// ErrIsolation: the call ran under another isolation level than READ COMMITTED.
	ErrIsolation = errors.New("wrong transaction isolation")
)

var sentinels = map[string]error{
	"AP001": ErrArgument,
	"AP002": ErrNotAllowed,
	"AP003": ErrNoWorkspace,
	"AP004": ErrTransition,
	"AP005": ErrIsolation,
}

const (
	stateFeatureNotSupported = "0A000" // a cached plan whose result type changed
	stateUndefinedFunction   = "42883"
	stateInvalidSchemaName   = "3F000"
)

// translate gives an error of ours its sentinel, with the message and the hint of the database.
func translate(err error) error {
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) {
		return err
	}
	sentinel, ok := sentinels[pgErr.Code]
	if !ok {
		return err
	}
	if pgErr.Hint == "" {
		return fmt.Errorf("%w: %s", sentinel, pgErr.Message)
	}
	return fmt.Errorf("%w: %s (%s)", sentinel, pgErr.Message, pgErr.Hint)
}

func hasState(err error, state string) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.Code == state
}
