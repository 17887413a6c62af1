// Package problem is the only writer of problem+json (RFC 9457) and of field errors. Its catalogue lists every type
// of problem.
package problem

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"
)

const contentType = "application/problem+json"

// Problem is the answer to a request that cannot be fulfilled.
type Problem struct {
	Type   string `json:"type" example:"urn:autopost:problem:wrong-request" doc:"The kind of problem, for programs. docs/reference/problems.md lists all with their remedies."`
	Title  string `json:"title" example:"Invalid request" doc:"The type in words."`
	Status int    `json:"status" example:"422" doc:"The HTTP status."`
	Detail string `json:"detail" example:"The request is refused." doc:"The cause and the remedy, for people."`
	Reason string `json:"reason,omitempty" example:"unknown_channel" doc:"The code of a refusal by the database, for programs."`
	// Decision, Digest, Plan, SubmissionID and DeliveryID explain a refused change of a submission.
	Decision     *Decision      `json:"decision,omitempty" doc:"The decision about the submission: it was taken before."`
	Digest       string         `json:"digest,omitempty" doc:"The digest of the present plan, if it is another one than the given one."`
	Plan         map[string]any `json:"plan,omitempty" doc:"The present plan."`
	SubmissionID string         `json:"submission_id,omitempty" doc:"The submission with the same event."`
	DeliveryID   string         `json:"delivery_id,omitempty" doc:"The delivery by which the channel has the same content."`
	Errors       []Fault        `json:"errors,omitempty" nullable:"false" doc:"Each thing that is wrong with the request."`
}

// Decision is what a person decided about a submission.
type Decision struct {
	Decision string `json:"decision" enum:"approve,reject" example:"approve"`
	By       string `json:"by" example:"user:olga" doc:"The person."`
	At       string `json:"at" format:"date-time" example:"2026-12-01T10:00:00Z"`
	Source   string `json:"source,omitempty" example:"api" doc:"The way of the decision."`
	Reason   string `json:"reason,omitempty" example:"too early"`
}

// Fault is a field error: one field that breaks a rule, with the remedy.
type Fault struct {
	Field  string `json:"field" example:"body.seconds" doc:"A field of the body, a parameter, or an argument."`
	Reason string `json:"reason" example:"is not between 1 and 31536000" doc:"The broken rule. With the field it forms a sentence."`
	Remedy string `json:"remedy" example:"pass how long to pause" doc:"The correction."`
	// Code names the rule, for words in other languages; "" if it has no name yet.
	Code string `json:"code,omitempty" example:"out_of_range" doc:"The name of the rule; missing if it has none."`
}

// Error implements error.
func (p *Problem) Error() string { return p.Detail }

// GetStatus returns the HTTP status.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType returns the media type, whatever the caller accepts.
func (p *Problem) ContentType(string) string { return contentType }

// With sets the field errors and returns the problem.
func (p *Problem) With(faults ...Fault) *Problem {
	p.Errors = faults
	return p
}

// Says returns a problem of this kind with a formatted detail.
func (k Kind) Says(format string, args ...any) *Problem {
	return &Problem{Type: k.URN(), Title: k.Title, Status: k.Status, Detail: fmt.Sprintf(format, args...)}
}

// Answer is a *Problem, or a struct that embeds one and adds members.
type Answer interface{ GetStatus() int }

// Write sends the answer. Headers that are set before it are kept.
func Write(w http.ResponseWriter, a Answer) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(a.GetStatus())
	// The caller may be gone. There is no other way to report that.
	_ = json.NewEncoder(w).Encode(a)
}

// RetryAfter sets the header Retry-After to wait in whole seconds, rounded up, at least 1. It returns the seconds.
func RetryAfter(w http.ResponseWriter, wait time.Duration) int {
	seconds := seconds(wait)
	w.Header().Set("Retry-After", strconv.Itoa(seconds))
	return seconds
}

// seconds rounds up to whole seconds, at least 1.
func seconds(d time.Duration) int { return max(1, int(math.Ceil(d.Seconds()))) }
