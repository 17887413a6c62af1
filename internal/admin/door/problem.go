package door

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"autopost"
)

const (
	unavailable = "The database does not answer at the moment. Try again."
	// ComeAgain is the Retry-After, in seconds, of an answer that the database could not give.
	ComeAgain = "5"
	// comeLater is that of an answer for which people have to make room first.
	comeLater = "30"
)

// Problem is what is answered to a request that cannot be done, by RFC 9457.
type Problem struct {
	Type   string  `json:"type" example:"about:blank"`
	Title  string  `json:"title" example:"Unprocessable Entity" doc:"The status in words."`
	Status int     `json:"status" example:"422"`
	Detail string  `json:"detail" example:"The request is refused." doc:"What happened, for people."`
	Reason string  `json:"reason,omitempty" example:"unknown_channel" doc:"The code of a refusal by the database, for programs."`
	Errors []Fault `json:"errors,omitempty" nullable:"false" doc:"Each thing that is wrong with the request."`
}

// Fault is one thing that is wrong with a request.
type Fault struct {
	Field  string `json:"field" example:"body.seconds" doc:"Where: a field of the body, a parameter, or an argument."`
	Reason string `json:"reason" example:"is not between 1 and 31536000"`
	Remedy string `json:"remedy" example:"pass how long to pause"`
}

// Error implements error.
func (p *Problem) Error() string { return p.Detail }

// GetStatus implements huma.StatusError.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType says what the body is, whatever the caller accepts.
func (p *Problem) ContentType(string) string { return "application/problem+json" }

var _ huma.StatusError = (*Problem)(nil)

// The library keeps its error constructor in a package variable. Ours leaves out the
// refused value, which may be a secret that was put into the wrong field.
func init() {
	huma.NewError = func(status int, detail string, errs ...error) huma.StatusError {
		p := NewProblem(status, detail)
		for _, err := range errs {
			if detailed := huma.ErrorDetailer(nil); errors.As(err, &detailed) {
				d := detailed.ErrorDetail()
				p.Errors = append(p.Errors, Fault{Field: d.Location, Reason: d.Message, Remedy: "send it as /openapi.json describes it"})
			}
		}
		if status == http.StatusUnprocessableEntity {
			p.Detail = "The request is not as this operation takes it."
		}
		return p
	}
}

// NewProblem makes a problem of a status.
func NewProblem(status int, detail string, faults ...Fault) *Problem {
	return &Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail, Errors: faults}
}

// NotFound says what is missing.
func NotFound(detail string) error { return NewProblem(http.StatusNotFound, detail) }

// Wrong refuses a request for one thing.
func Wrong(field, reason, remedy string) error { return wrong(field, reason, remedy) }

func wrong(field, reason, remedy string) *Problem {
	return NewProblem(http.StatusUnprocessableEntity, field+" "+reason+": "+remedy+".", Fault{Field: field, Reason: reason, Remedy: remedy})
}

// WriteProblem answers with a problem.
func WriteProblem(w http.ResponseWriter, p *Problem) {
	w.Header().Set("Content-Type", p.ContentType(""))
	w.WriteHeader(p.Status)
	// A caller that is gone cannot be told so.
	_ = json.NewEncoder(w).Encode(p)
}

// writeProblem is WriteProblem for a request that the library has taken.
func writeProblem(ctx huma.Context, p *Problem) {
	ctx.SetHeader("Content-Type", p.ContentType(""))
	ctx.SetStatus(p.Status)
	_ = json.NewEncoder(ctx.BodyWriter()).Encode(p)
}

// problemOf is what a caller is told of an error of the store's.
func (d *Door) problemOf(ctx context.Context, operation string, err error) error {
	wrong := (*autopost.ArgumentError)(nil)
	if errors.As(err, &wrong) {
		return Wrong(wrong.Argument, wrong.Reason, remedyOf(wrong.Remedy))
	}
	caller := Caller(ctx)
	if errors.Is(err, ErrDefect) {
		d.Log.Error("admin.defect", "operation", operation, "workspace_id", caller.WorkspaceID, "error", err)
		return NewProblem(http.StatusInternalServerError, "This is a defect; the daemon's log says more.")
	}
	d.Log.Error("admin.unavailable", "operation", operation, "workspace_id", caller.WorkspaceID, "error", err)
	if errors.Is(err, autopost.ErrNoRoom) {
		return noRoom("The disk of the database is full: nothing was changed. Its operator has to make room; then try again.")
	}
	return huma.ErrorWithHeaders(NewProblem(http.StatusServiceUnavailable, unavailable), http.Header{"Retry-After": {ComeAgain}})
}

// StorageProblem is what a caller is told when the origin of media does not take something.
func (d *Door) StorageProblem(ctx context.Context, err error) error {
	d.Log.Error("admin.unavailable", "operation", "store media", "workspace_id", Caller(ctx).WorkspaceID, "error", err)
	if errors.Is(err, autopost.ErrNoRoom) {
		return noRoom("The disk of the media origin, or that of the database, is full: nothing was kept. Its operator has to make room; then try again.")
	}
	return huma.ErrorWithHeaders(NewProblem(http.StatusServiceUnavailable, "The storage of media does not answer at the moment. Try again."), http.Header{"Retry-After": {ComeAgain}})
}

func noRoom(detail string) error {
	return huma.ErrorWithHeaders(NewProblem(http.StatusInsufficientStorage, detail), http.Header{"Retry-After": {comeLater}})
}

func remedyOf(remedy string) string {
	if remedy == "" {
		return "correct it"
	}
	return strings.TrimSuffix(remedy, ".")
}
