package admin

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"autopost/internal/admin/door"
)

// readyTimeout bounds a readiness answer; what has not answered by then is missing.
const readyTimeout = 2 * time.Second

// Ready tells whether a part that the daemon cannot work without is there.
type Ready interface {
	Ready(ctx context.Context) error
}

// Check is one part that readiness depends on: the database, its schema's
// version, the storage of media.
type Check struct {
	// Name and Remedy are shown to anyone who asks; the error is only logged, as it may name hosts.
	Name   string
	Remedy string
	Part   Ready
	// After names an earlier check: while that is missing this one can be told nothing, and points to it.
	After string
}

// ReadyFunc is a function as a Ready.
type ReadyFunc func(ctx context.Context) error

// Ready implements Ready.
func (f ReadyFunc) Ready(ctx context.Context) error { return f(ctx) }

// alive says that the process answers, and nothing else: a database that is gone
// is not cured by a restart.
func alive(w http.ResponseWriter, _ *http.Request) {
	writeAs(w, http.StatusOK, "application/json", map[string]string{"status": "ok"})
}

func writeAs(w http.ResponseWriter, status int, contentType string, body any) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	// A caller that is gone cannot be told so.
	_ = json.NewEncoder(w).Encode(body)
}

type readiness struct {
	checks []Check
	log    *slog.Logger
}

func (h readiness) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
	defer cancel()
	answers := make([]chan error, len(h.checks))
	for i, c := range h.checks {
		answers[i] = make(chan error, 1)
		go func() { answers[i] <- c.Part.Ready(ctx) }()
	}
	verdict := verdict{Status: "ready"}
	var missing []string
	for i, c := range h.checks {
		found := finding{Name: c.Name, OK: true}
		if err := answer(ctx, answers[i]); err != nil {
			found.OK, found.Detail = false, c.Remedy
			if slices.Contains(missing, c.After) {
				found.Detail = "see " + c.After
			}
			missing = append(missing, c.Name)
			h.log.Warn("admin.not_ready", "part", c.Name, "error", err)
		}
		verdict.Checks = append(verdict.Checks, found)
	}
	if len(missing) > 0 {
		writeAs(w, http.StatusServiceUnavailable, "application/problem+json",
			unready{door.NewProblem(http.StatusServiceUnavailable, "Not ready: "+strings.Join(missing, ", ")+"."), verdict.Checks})
		return
	}
	writeAs(w, http.StatusOK, "application/json", verdict)
}

// finding is what is said of one check; Detail is what to do about it.
type finding struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail,omitempty"`
}

type verdict struct {
	Status string    `json:"status"`
	Checks []finding `json:"checks"`
}

type unready struct {
	*door.Problem

	Checks []finding `json:"checks"`
}

// answer waits for a part until ctx ends; an answer that has come by then counts.
func answer(ctx context.Context, from <-chan error) error {
	select {
	case err := <-from:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-from:
		return err
	default:
		return ctx.Err()
	}
}
