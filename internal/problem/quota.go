package problem

import (
	"fmt"
	"net/http"
	"time"
)

// Quota is a limit of requests as a caller sees it: the fields RateLimit-Policy and RateLimit of the IETF draft
// ratelimit-headers.
type Quota struct {
	// Name identifies the limit.
	Name string
	// Most is how many units fit into Window. If Window is 0, Most limits requests that run at once.
	Most   int
	Window time.Duration
	// Left is how many units are left now, Reset the time until all of Most is left again; 0 if unknown.
	Left  int
	Reset time.Duration
}

// Show sets the header fields of the quota. The zero value sets none.
func (q Quota) Show(w http.ResponseWriter) {
	if q.Name == "" {
		return
	}
	unit, reset := `;qu="concurrent-requests"`, ""
	if q.Window > 0 {
		unit = fmt.Sprintf(";w=%d", seconds(q.Window))
	}
	if q.Reset > 0 {
		reset = fmt.Sprintf(";t=%d", seconds(q.Reset))
	}
	w.Header().Set("RateLimit-Policy", fmt.Sprintf("%q;q=%d%s", q.Name, q.Most, unit))
	w.Header().Set("RateLimit", fmt.Sprintf("%q;r=%d%s", q.Name, max(0, q.Left), reset))
}
