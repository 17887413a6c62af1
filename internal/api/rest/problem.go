package rest

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"autopost"
	"autopost/internal/problem"
	"autopost/internal/worker"
)

const (
	unavailable = "The database is unavailable. Try again later."
	// RetrySeconds is the Retry-After in seconds if the database is unavailable.
	RetrySeconds = "5"
	// retrySecondsFull is the Retry-After in seconds if a disk is full.
	retrySecondsFull = "30"
)

var _ huma.StatusError = (*problem.Problem)(nil)

// huma has its error constructor in a package variable. Ours omits the refused value, which may be a secret in the
// wrong field.
func init() {
	huma.NewError = func(status int, detail string, errs ...error) huma.StatusError {
		p := ofStatus(status).Says("%s", detail)
		p.Status = status
		for _, err := range errs {
			if detailed := huma.ErrorDetailer(nil); errors.As(err, &detailed) {
				d := detailed.ErrorDetail()
				p.Errors = append(p.Errors, problem.Fault{Field: d.Location, Reason: d.Message, Remedy: "send it as /openapi.json describes it"})
			}
		}
		if status == http.StatusUnprocessableEntity {
			p.Detail = "The request is invalid: see errors."
		}
		return p
	}
}

// ofStatus returns the kind of a problem that huma found.
func ofStatus(status int) problem.Kind {
	if kinds := problem.OfAPI(status); len(kinds) > 0 {
		return kinds[0]
	}
	if status < http.StatusInternalServerError {
		return problem.WrongRequest
	}
	return problem.Defect
}

// NotFound returns a 404.
func NotFound(detail string) error { return problem.NotFound.Says("%s", detail) }

// Wrong returns a 422 for one field. Together field and reason form a sentence.
func Wrong(field, reason, remedy string) error { return wrong(field, reason, remedy) }

func wrong(field, reason, remedy string) *problem.Problem {
	return problem.WrongRequest.Says("%s %s: %s.", field, reason, remedy).With(problem.Fault{Field: field, Reason: reason, Remedy: remedy})
}

// writeProblem is problem.Write for a request that huma has accepted.
func writeProblem(ctx huma.Context, p *problem.Problem) {
	_, w := humago.Unwrap(ctx)
	problem.Write(w, p)
}

// problemOf maps an error of the Store to a problem. An error that is no *autopost.ArgumentError and that the database
// does not repeat for the same call (worker.ErrRefused) means that the database is unavailable.
func (d *Server) problemOf(ctx context.Context, err error) error {
	if p := (*problem.Problem)(nil); errors.As(err, &p) {
		return p
	}
	wrong := (*autopost.ArgumentError)(nil)
	if errors.As(err, &wrong) {
		return Wrong(wrong.Argument, wrong.Reason, remedyOf(wrong.Remedy))
	}
	operation, caller := operationOf(ctx), Caller(ctx)
	if errors.Is(err, worker.ErrRefused) {
		d.Log.Error("admin.defect", "operation", operation, "workspace_id", caller.WorkspaceID, "error", err)
		return problem.Defect.Says("This is a defect of autopost. See the log of the daemon.")
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return problem.Unavailable.Says(unavailable) // the caller is gone: nothing is wrong with the database
	}
	d.Log.Error("admin.unavailable", "operation", operation, "workspace_id", caller.WorkspaceID, "error", err)
	if errors.Is(err, autopost.ErrNoSpace) {
		return noSpace("The disk of the database is full: nothing was changed. The operator must free disk space; then try again.")
	}
	return huma.ErrorWithHeaders(problem.Unavailable.Says(unavailable), http.Header{"Retry-After": {RetrySeconds}})
}

// StorageProblem maps an error of the media store to a problem.
func (d *Server) StorageProblem(ctx context.Context, err error) error {
	d.Log.Error("admin.unavailable", "operation", "store media", "workspace_id", Caller(ctx).WorkspaceID, "error", err)
	if errors.Is(err, autopost.ErrNoSpace) {
		return noSpace("The disk of the media store or of the database is full: nothing was stored. The operator must free disk space; then try again.")
	}
	return huma.ErrorWithHeaders(problem.Unavailable.Says("The media store is unavailable. Try again later."), http.Header{"Retry-After": {RetrySeconds}})
}

func noSpace(detail string) error {
	return huma.ErrorWithHeaders(problem.NoRoom.Says("%s", detail), http.Header{"Retry-After": {retrySecondsFull}})
}

func remedyOf(remedy string) string {
	if remedy == "" {
		return "correct it"
	}
	return strings.TrimSuffix(remedy, ".")
}
