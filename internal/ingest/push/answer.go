package push

import (
	"encoding/json"
	"fmt"
	"net/http"

	"autopost/internal/problem"
)

// The statuses of one post.
const (
	statusEnqueued  = "enqueued"
	statusAccepted  = "accepted"
	statusDuplicate = "duplicate"
	statusRejected  = "rejected"
)

// result is the answer of the database for one post.
type result struct {
	Status    string  `json:"status"`
	RunID     *string `json:"run_id"`
	TraceID   *string `json:"trace_id"`
	MessageID *string `json:"message_id"`
	// SubmissionID is set while media are fetched or a decision is awaited, Pending the number of channels that wait.
	SubmissionID *string `json:"submission_id,omitempty"`
	Pending      int     `json:"pending,omitempty"`
	Enqueued     int     `json:"enqueued"`
	Deduped      int     `json:"deduped"`
	Invalid      int     `json:"invalid"`
	Skipped      int     `json:"skipped"`
	// Fanout and Planned are set while the fan-out runs. Enqueued then equals Planned.
	Fanout   string          `json:"fanout,omitempty"`
	Planned  int             `json:"planned,omitempty"`
	Errors   []problem.Fault `json:"errors,omitempty"`
	Warnings []string        `json:"warnings,omitempty"`
}

// rejection is the result of a rejected post in an array. It has no ids.
type rejection struct {
	Status   string          `json:"status"`
	Errors   []problem.Fault `json:"errors"`
	Warnings []string        `json:"warnings,omitempty"`
}

// decode reads the answer for n posts. An answer that does not match the request is an error, never a 2xx.
func decode(raw json.RawMessage, n int) ([]result, error) {
	var answer struct {
		RunID   *string  `json:"run_id"`
		Results []result `json:"results"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	if len(answer.Results) != n {
		return nil, fmt.Errorf("read answer: %d results for %d posts", len(answer.Results), n)
	}
	for i := range answer.Results {
		r := &answer.Results[i]
		if r.Fanout == "done" {
			r.Fanout = ""
		}
		switch r.Status {
		case statusEnqueued, statusAccepted, statusDuplicate, statusRejected:
		default:
			return nil, fmt.Errorf("read answer: unknown status %q", r.Status)
		}
		if r.RunID == nil {
			r.RunID = answer.RunID
		}
	}
	return answer.Results, nil
}

// statusOf returns 202 if a post was stored, 422 if all posts are invalid, else 200: the valid posts are duplicates.
func statusOf(results []result) int {
	status := http.StatusUnprocessableEntity
	for _, r := range results {
		switch r.Status {
		case statusEnqueued, statusAccepted:
			return http.StatusAccepted
		case statusDuplicate:
			status = http.StatusOK
		}
	}
	return status
}

func runOf(results []result) string {
	for _, r := range results {
		if r.RunID != nil {
			return *r.RunID
		}
	}
	return ""
}

func writeSingle(w http.ResponseWriter, status int, r result) {
	if r.Status == statusRejected {
		p := problem.WrongPost.Says("The post is invalid%s", firstOf(r.Errors))
		p.Errors = r.Errors
		problem.Write(w, p)
		return
	}
	writeJSON(w, status, r)
}

// firstOf describes the first error as the end of a sentence.
func firstOf(errors []problem.Fault) string {
	if len(errors) == 0 {
		return "."
	}
	return fmt.Sprintf(": %s %s; %s.", errors[0].Field, errors[0].Reason, errors[0].Remedy)
}

func writeArray(w http.ResponseWriter, status int, results []result) {
	answers := make([]any, len(results))
	for i, r := range results {
		answers[i] = r
		if r.Status == statusRejected {
			answers[i] = rejection{Status: r.Status, Errors: r.Errors, Warnings: r.Warnings}
		}
	}
	if status == http.StatusUnprocessableEntity {
		problem.Write(w, refusedArray{problem.WrongPost.Says("None of the posts is valid. For each post, results names the field, the reason and the remedy."), answers})
		return
	}
	writeJSON(w, status, map[string]any{"results": answers})
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// The source may be gone. There is no other way to report that.
	_ = json.NewEncoder(w).Encode(body)
}
