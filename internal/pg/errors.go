package pg

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"autopost"
)

// What our functions raise, by SQLSTATE.
var (
	// ErrArgument: a wrong argument; an *autopost.ArgumentError beside it names it and the remedy.
	ErrArgument = errors.New("wrong argument")
	// ErrNotAllowed: the role may not speak for the workspace.
	ErrNotAllowed = errors.New("not allowed for this workspace")
	// ErrNoWorkspace: there is no such workspace.
	ErrNoWorkspace = errors.New("unknown workspace")
	// ErrTransition: a delivery cannot move that way.
	ErrTransition = errors.New("no allowed transition")
	// ErrIsolation: the call ran under another isolation level than READ COMMITTED.
	ErrIsolation = errors.New("wrong transaction isolation")
	// ErrUnexpected: the database is there and refused what it should not: a defect.
	ErrUnexpected = errors.New("unexpected answer of the database")
)

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
	stateUnreadable          = "22P02" // a text of another form than its type has

	// What a database says at its door.
	stateNoSuchRole     = "22023" // as of any setting that a connection brings along
	stateNotAMember     = "42501" // as of the database
	stateNoSuchDatabase = "3D000"
	stateWrongLogin     = "28000"
	stateWrongPassword  = "28P01"
)

// away are the classes of SQLSTATE by which a database says that it cannot serve now:
// lost connections, rollbacks, too few resources, locks and shutdowns, its disks.
var away = []string{"08", "40", "53", "55", "57", "58"}

// unfit are what a database raises over a value that is well-formed and none of its own: a number out
// of range, a time that is none, a NUL, half of a pair of code units, a text of another form.
var unfit = []string{"22003", "22007", "22008", "22021", "22P02", "22P05"}

// translate gives an error of ours its sentinel, with the message and the hint of the database;
// a full disk is autopost.ErrNoRoom.
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
	case ok && pgErr.Hint == "":
		return fmt.Errorf("%w: %s", sentinel, pgErr.Message)
	case ok:
		return fmt.Errorf("%w: %s (%s)", sentinel, pgErr.Message, pgErr.Hint)
	case pgErr.Code == stateUnreadable && strings.Contains(pgErr.Message, "type uuid"):
		_, given, _ := strings.Cut(pgErr.Message, ": ")
		return fmt.Errorf("%w: %w", ErrArgument, &autopost.ArgumentError{Argument: "id", Reason: given + " is none", Remedy: "write an id as the list of such things shows it"})
	case slices.Contains(unfit, pgErr.Code):
		return fmt.Errorf("%w: %w: %w", ErrArgument, &autopost.ArgumentError{
			Argument: "value", Reason: "cannot be stored", Remedy: "look for NUL characters, and for numbers and times beyond all bounds",
		}, err)
	case pgErr.Code == stateDiskFull:
		return fmt.Errorf("the database: %w: %w", autopost.ErrNoRoom, err)
	case slices.Contains(away, class) || pgErr.Code == stateFeatureNotSupported:
		return err
	default:
		return fmt.Errorf("%w: %w", ErrUnexpected, err)
	}
}

// argumentOf reads what autopost.refuse wrote: "argument NAME: REASON", the remedy as the hint.
func argumentOf(pgErr *pgconn.PgError) *autopost.ArgumentError {
	argument, reason, _ := strings.Cut(strings.TrimPrefix(pgErr.Message, "argument "), ": ")
	return &autopost.ArgumentError{Argument: argument, Reason: reason, Remedy: pgErr.Hint}
}

// Refused reports that the database is there and refused the call for what is in
// it: asked again it would refuse it again.
func Refused(err error) bool {
	return slices.ContainsFunc([]error{ErrArgument, ErrNotAllowed, ErrNoWorkspace, ErrTransition, ErrIsolation, ErrUnexpected},
		func(known error) bool { return errors.Is(err, known) })
}

// Remedy is what to do about a database that lets nobody in, whose address stands in a variable; "" for any other error.
func Remedy(err error, variable string) string {
	if errors.As(err, new(*pgconn.ParseConfigError)) {
		return "correct " + variable
	}
	if !errors.As(err, new(*pgconn.ConnectError)) || errors.Is(err, context.Canceled) {
		return ""
	}
	pgErr := new(pgconn.PgError)
	_ = errors.As(err, &pgErr) // without one nobody answered
	ofRole := strings.Contains(pgErr.Message, "autopost_engine")
	switch {
	case pgErr.Code == stateNoSuchRole && ofRole:
		return "the database has not been prepared: run autopost migrate"
	case pgErr.Code == stateNotAMember && ofRole:
		return "have its owner say: grant autopost_engine to the login of " + variable
	case pgErr.Code == stateNoSuchDatabase:
		return "create the database, or correct " + variable
	case pgErr.Code == stateWrongLogin, pgErr.Code == stateWrongPassword:
		return "correct the user and the password of " + variable + ", or what pg_hba.conf says of them"
	}
	return "look whether the database runs, and at " + variable
}

func hasState(err error, state string) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.Code == state
}
