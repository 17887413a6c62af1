package admin

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
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
	// Name is shown to anyone who asks; the error is only logged, as it may name hosts.
	Name string
	Part Ready
}

// alive says that the process answers, and nothing else: a database that is gone
// is not cured by a restart.
func alive(w http.ResponseWriter, _ *http.Request) {
	writeStatus(w, "ok")
}

func writeStatus(w http.ResponseWriter, status string) {
	w.Header().Set("Content-Type", "application/json")
	// A caller that is gone cannot be told so.
	_ = json.NewEncoder(w).Encode(map[string]string{"status": status})
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
	var missing []string
	for i, c := range h.checks {
		if err := answer(ctx, answers[i]); err != nil {
			missing = append(missing, c.Name)
			h.log.Warn("admin.not_ready", "part", c.Name, "error", err)
		}
	}
	if len(missing) > 0 {
		door.WriteProblem(w, door.NewProblem(http.StatusServiceUnavailable, "Not ready: "+strings.Join(missing, ", ")+"."))
		return
	}
	writeStatus(w, "ready")
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
