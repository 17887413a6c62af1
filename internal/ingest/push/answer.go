package push

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// What became of one post.
const (
	statusEnqueued  = "enqueued"
	statusAccepted  = "accepted"
	statusDuplicate = "duplicate"
	statusRejected  = "rejected"
)

// result is the database's answer for one post.
type result struct {
	Status    string  `json:"status"`
	RunID     *string `json:"run_id"`
	TraceID   *string `json:"trace_id"`
	MessageID *string `json:"message_id"`
	Enqueued  int     `json:"enqueued"`
	Deduped   int     `json:"deduped"`
	Invalid   int     `json:"invalid"`
	Skipped   int     `json:"skipped"`
	// Fanout and Planned are told while it is running: Enqueued is then what is planned.
	Fanout   string   `json:"fanout,omitempty"`
	Planned  int      `json:"planned,omitempty"`
	Errors   []fault  `json:"errors,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// rejection is how a rejected post is answered among others: it has no ids.
type rejection struct {
	Status   string   `json:"status"`
	Errors   []fault  `json:"errors"`
	Warnings []string `json:"warnings,omitempty"`
}

// decode reads the answer for n posts; one that does not fit the question is an
// error, never a 2xx.
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

// statusOf is 202 when anything was taken, 422 when all is wrong, else 200: what is
// not wrong was taken before.
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
		p := wrongPost.says("The post is not of the right form%s", firstOf(r.Errors))
		p.Errors = r.Errors
		writeProblem(w, p)
		return
	}
	writeJSON(w, "application/json", status, r)
}

// firstOf says in a sentence what errors begin with.
func firstOf(errors []fault) string {
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
		p := wrongPost.says("None of the posts is of the right form; results says of each which field, why, and what to do.")
		p.Results = answers
		writeProblem(w, p)
		return
	}
	writeJSON(w, "application/json", status, map[string]any{"results": answers})
}
