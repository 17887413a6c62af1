package admin

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
)

const (
	unavailable = "The database does not answer at the moment. Try again."
	// comeAgain is the Retry-After, in seconds, of an answer that the database could not give.
	comeAgain = "5"
)

// The library keeps its error constructor in a package variable. Ours gives every
// problem a type and leaves out the refused value, which may be a secret that was
// put into the wrong field.
func init() {
	huma.NewError = func(status int, detail string, errs ...error) huma.StatusError {
		p := newProblem(status, detail)
		for _, err := range errs {
			if detailed := huma.ErrorDetailer(nil); errors.As(err, &detailed) {
				d := detailed.ErrorDetail()
				p.Errors = append(p.Errors, &huma.ErrorDetail{Message: d.Message, Location: d.Location})
			}
		}
		return p
	}
}

// newProblem makes an answer by RFC 9457.
func newProblem(status int, detail string) *huma.ErrorModel {
	return &huma.ErrorModel{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail}
}

func writeProblem(w http.ResponseWriter, status int, detail string) {
	writeJSON(w, "application/problem+json", status, newProblem(status, detail))
}

func writeJSON(w http.ResponseWriter, contentType string, status int, body any) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	// A caller that is gone cannot be told so.
	_ = json.NewEncoder(w).Encode(body)
}

func notFound(w http.ResponseWriter, _ *http.Request) {
	writeProblem(w, http.StatusNotFound, "There is nothing here.")
}
