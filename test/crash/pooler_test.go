package crash

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/pgtest"
	"autopost/test/house"
)

// At full size: the daemon behind PgBouncer in transaction mode, hearing the bell on a
// connection of its own, or polling where it has none.
func TestDaemonBehindPgBouncer(t *testing.T) {
	ways := map[string]func(h *house.House) []string{}
	if pgtest.Long() {
		ways["LISTEN on a direct connection"] = func(h *house.House) []string { return []string{"AUTOPOST_LISTEN_URL=" + h.URL("engine")} }
		ways["polling"] = func(*house.House) []string { return nil }
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			h := house.New(t)
			h.Workspace("news")
			h.Endpoint("news", "cms", "secret-cms")
			for n := range 8 {
				h.Channel("news", house.Channel{ID: fmt.Sprint("t", n), Platform: house.Telegram})
			}
			environment := append(way(h), "DATABASE_URL="+pgtest.PgBouncer(t, h.URL("engine"), 4))
			d := h.Serve(environment...)
			h.Serve(environment...)
			began := time.Now()
			for n := range 25 {
				h.Push(d, "secret-cms", house.Post("text", fmt.Sprint("Post ", n)))
			}
			h.Drained("news")
			toll := h.Judge("news")
			require.Equal(t, house.Toll{Deliveries: 200, Sent: 200}, toll)
			t.Logf("200 deliveries in %s", time.Since(began).Round(time.Millisecond))
			h.Verified()
		})
	}
}
