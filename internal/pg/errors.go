package pg

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"autopost"
	"autopost/internal/worker"
)

// refusal is an error that the database repeats for the same call. It matches worker.ErrRefused.
type refusal string

func (r refusal) Error() string { return string(r) }

// Is implements the interface of errors.Is.
func (refusal) Is(target error) bool { return target == worker.ErrRefused }

// Errors that our functions raise, by SQLSTATE.
var (
	// ErrArgument means a wrong argument. An *autopost.ArgumentError in the same chain names it and the remedy.
	ErrArgument error = refusal("wrong argument")
	// ErrNotAllowed means that the role has no access to the workspace.
	ErrNotAllowed error = refusal("not allowed for this workspace")
	// ErrNoWorkspace means that the workspace does not exist.
	ErrNoWorkspace error = refusal("unknown workspace")
	// ErrTransition means that the status of a delivery cannot change like this.
	ErrTransition error = refusal("no allowed transition")
	// ErrIsolation means that the transaction does not use READ COMMITTED.
	ErrIsolation error = refusal("wrong transaction isolation")
	// ErrUnexpected means that the database refused a call that it should accept: a defect.
	ErrUnexpected error = refusal("unexpected answer of the database")
)

// RefusedError is an error that one of our functions raised. It wraps the error of its SQLSTATE.
type RefusedError struct {
	sentinel error
	// Message and Remedy are the texts of the function. Remedy may be empty.
	Message, Remedy string
}

// Error returns the error in one line, with its kind.
func (e *RefusedError) Error() string {
	if e.Remedy == "" {
		return fmt.Sprintf("%v: %s", e.sentinel, e.Message)
	}
	return fmt.Sprintf("%v: %s (%s)", e.sentinel, e.Message, e.Remedy)
}

// Unwrap returns the error of the SQLSTATE.
func (e *RefusedError) Unwrap() error { return e.sentinel }

var sentinels = map[string]error{
	stateArgument: ErrArgument,
	"AP002":       ErrNotAllowed,
	"AP003":       ErrNoWorkspace,
	"AP004":       ErrTransition,
	"AP005":       ErrIsolation,
}

const (
	stateArgument            = "AP001"
	stateFeatureNotSupported = "0A000" // a cached plan whose result type changed
	stateUndefinedFunction   = "42883"
	stateInvalidSchemaName   = "3F000"
	stateProtocolViolation   = "08P01" // PgBouncer: "unsupported startup parameter: role"
	stateDiskFull            = "53100"
	stateUnreadable          = "22P02" // a text that the type does not accept

	// Refused connections.
	stateNoSuchRole     = "22023" // also for any other setting of a connection
	stateNotAMember     = "42501" // also for the database
	stateNoSuchDatabase = "3D000"
	stateWrongLogin     = "28000"
	stateWrongPassword  = "28P01"
)

// unavailable are the SQLSTATE classes of a database that cannot serve now: lost connections, rollbacks, lack of
// resources, locks, shutdowns and disks.
var unavailable = []string{"08", "40", "53", "55", "57", "58"}

// unstorable are the SQLSTATEs of well-formed JSON values that PostgreSQL cannot store: numbers and times out of range,
// NUL characters, half surrogate pairs, texts that their type does not accept.
var unstorable = []string{"22003", "22007", "22008", "22021", "22P02", "22P05"}

// translate adds the sentinel of an error of ours, with the message and the hint of the database. A full
// disk is autopost.ErrNoSpace. Errors of lost connections and shutdowns stay as they are.
func translate(err error) error {
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) {
		return err
	}
	class := pgErr.Code[:min(2, len(pgErr.Code))]
	sentinel, ok := sentinels[pgErr.Code]
	switch {
	case pgErr.Code == stateArgument:
		return fmt.Errorf("%w: %w", ErrArgument, argumentOf(pgErr))
	case ok:
		return &RefusedError{sentinel: sentinel, Message: pgErr.Message, Remedy: pgErr.Hint}
	case pgErr.Code == stateUnreadable && strings.Contains(pgErr.Message, "type uuid"):
		_, given, _ := strings.Cut(pgErr.Message, ": ")
		return fmt.Errorf("%w: %w", ErrArgument, &autopost.ArgumentError{Argument: "id", Reason: "must be a UUID, got " + given, Remedy: "copy the id from the list command"})
	case slices.Contains(unstorable, pgErr.Code):
		return fmt.Errorf("%w: %w: %w", ErrArgument, &autopost.ArgumentError{
			Argument: "value", Reason: "cannot be stored", Remedy: "remove NUL characters, and numbers and times out of range",
		}, err)
	case pgErr.Code == stateDiskFull:
		return fmt.Errorf("the database: %w: %w", autopost.ErrNoSpace, err)
	case slices.Contains(unavailable, class) || pgErr.Code == stateFeatureNotSupported:
		return err
	default:
		return fmt.Errorf("%w: %w", ErrUnexpected, err)
	}
}

// argumentOf parses the message that raise_argument wrote: "argument NAME: REASON", the remedy as the hint.
func argumentOf(pgErr *pgconn.PgError) *autopost.ArgumentError {
	argument, reason, _ := strings.Cut(strings.TrimPrefix(pgErr.Message, "argument "), ": ")
	return &autopost.ArgumentError{Argument: argument, Reason: reason, Remedy: pgErr.Hint}
}

// Refused reports whether the database refused the call because of its arguments: it would refuse it again.
func Refused(err error) bool { return errors.Is(err, worker.ErrRefused) }

// Remedy returns what to do about a refused connection to the database whose address is in variable; "" for any other
// error.
func Remedy(err error, variable string) string {
	if errors.As(err, new(*pgconn.ParseConfigError)) {
		return "correct " + variable
	}
	if !errors.As(err, new(*pgconn.ConnectError)) || errors.Is(err, context.Canceled) {
		return ""
	}
	pgErr := new(pgconn.PgError)
	_ = errors.As(err, &pgErr) // without a PgError the server did not answer
	ofRole := strings.Contains(pgErr.Message, "autopost_engine")
	switch {
	case pgErr.Code == stateNoSuchRole && ofRole:
		return "the database is not prepared: run autopost migrate"
	case pgErr.Code == stateNotAMember && ofRole:
		return "let its owner run: grant autopost_engine to the login of " + variable
	case pgErr.Code == stateNoSuchDatabase:
		return "create the database, or correct " + variable
	case pgErr.Code == stateWrongLogin, pgErr.Code == stateWrongPassword:
		return "correct the user and the password of " + variable + ", or their line in pg_hba.conf"
	}
	return "check that the database runs, and check " + variable
}

// Unreachable reports whether no connection to the database was made.
func Unreachable(err error) bool {
	return errors.As(err, new(*pgconn.ConnectError)) && !errors.Is(err, context.Canceled)
}

func hasState(err error, state string) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.Code == state
}
