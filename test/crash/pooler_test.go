package crash

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

// The daemon runs behind PgBouncer in transaction mode. It gets wake-ups on a direct
// connection (at full size), or polls without one.
func TestDaemonBehindPgBouncer(t *testing.T) {
	ways := map[string]func(h *harness.Harness) []string{"polling": func(*harness.Harness) []string { return nil }}
	if pgtest.Long() {
		ways["LISTEN on a direct connection"] = func(h *harness.Harness) []string { return []string{"AUTOPOST_LISTEN_URL=" + h.URL("engine")} }
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			h := harness.New(t)
			h.Workspace("news")
			h.Endpoint("news", "cms", "secret-cms")
			for n := range 8 {
				h.Channel("news", harness.Channel{ID: fmt.Sprint("t", n), Platform: harness.Telegram})
			}
			environment := append(way(h), "DATABASE_URL="+pgtest.PgBouncer(t, h.URL("engine"), 4))
			d := h.Serve(environment...)
			h.Serve(environment...)
			began := time.Now()
			for n := range 25 {
				h.Push(d, "secret-cms", harness.Post("text", fmt.Sprint("Post ", n)))
			}
			h.Drained("news")
			totals := h.Judge("news")
			require.Equal(t, harness.Totals{Deliveries: 200, Sent: 200}, totals)
			t.Logf("200 deliveries in %s", time.Since(began).Round(time.Millisecond))
			h.Verified()
		})
	}
}
