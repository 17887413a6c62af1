package api

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"autopost/internal/problem"
	"autopost/internal/worker"
)

// readyTimeout limits a readiness check. A part that does not answer in time is not ready.
const readyTimeout = 2 * time.Second

// Ready checks a part that the daemon requires.
type Ready interface {
	Ready(ctx context.Context) error
}

// Check is one part that readiness requires: the database, the version of its schema, the media store.
type Check struct {
	// Name and Remedy are public. The error is only logged, because it may name hosts.
	Name   string
	Remedy string
	Part   Ready
	// After names an earlier check that this one depends on. If that fails, this one refers to it.
	After string
}

// ReadyFunc is a function that implements Ready.
type ReadyFunc func(ctx context.Context) error

// Ready implements Ready.
func (f ReadyFunc) Ready(ctx context.Context) error { return f(ctx) }

// alive reports only that the process answers: a restart does not fix an unavailable database.
func alive(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, map[string]string{"status": "ok"})
}

func writeJSON(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
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
		go worker.Task(ctx, func() { answers[i] <- c.Part.Ready(ctx) })()
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
		problem.Write(w, unready{problem.NotReady.Says("Not ready: %s.", strings.Join(missing, ", ")), verdict.Checks})
		return
	}
	writeJSON(w, verdict)
}

// finding is the result of one check; Detail is the remedy.
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
	*problem.Problem

	Checks []finding `json:"checks"`
}

// answer waits for a result until ctx ends. A result that is already there counts.
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
