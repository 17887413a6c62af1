package crash

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/crash"
	"autopost/internal/pgtest"
	"autopost/internal/sim/feeds"
	"autopost/test/house"
)

const (
	// seeds is how often each point is died at under each policy in a long run.
	seeds = 20
	// pushes and items come in by the two doors while the daemon dies; the last push has
	// a picture, and a text that is too long for its caption on Telegram: two steps.
	pushes, items = 4, 3
)

var longCaption = "Picture " + strings.Repeat("and more of it ", 100) + "end"

// most is how often a point is certainly passed while the posts of a walk go out:
// the one to die at is drawn from so many.
var most = map[crash.Point]int{
	crash.BeforeReceipt: pushes, crash.InsideReceipt: pushes, crash.ReceiptCommitted: pushes,
	crash.InsideClaim: 4, crash.Claimed: 2, crash.Started: 12, crash.Accepted: 12, crash.ReplyRead: 12,
	crash.InsideCommit: 4, crash.Committed: 4, crash.InsideRecovery: 2,
}

// A process dies at each point that the code names: others take over, nothing that was
// acknowledged is lost, and every copy too many follows an outcome that was recorded as
// unknown; where the channel says hold, there is none.
func TestKilledAtEveryPoint(t *testing.T) {
	t.Parallel()
	rounds := 1
	if os.Getenv("AUTOPOST_LONG") != "" {
		rounds = 2 * seeds
	}
	var all tally
	t.Cleanup(func() { t.Log(all.String()) })
	for n, point := range crash.Points {
		if point == crash.BetweenMigrations || point == crash.ActCommitted {
			continue // below: nothing is sent there
		}
		for round := range rounds {
			policy := []string{"reconcile", "hold"}[(n+round)%2]
			t.Run(fmt.Sprintf("%s/%s/%d", point, policy, round/2), func(t *testing.T) {
				t.Parallel()
				all.add(point, policy, walk(t, point, policy, rand.New(rand.NewPCG(seed, uint64(1000*n+round)))))
			})
		}
	}
}

// walk has posts come in and go out while a daemon dies at point, and judges the end.
func walk(t *testing.T, point crash.Point, policy string, random *rand.Rand) house.Toll {
	h := house.New(t, house.Armed)
	station(h, 4, house.Channel{Parallel: 2})
	h.Exec(`update autopost.channels set on_unknown = $1`, policy)
	h.Exec(`update autopost.settings set value = '2' where key in ('submission_lease_seconds', 'pull_lease_seconds')`)
	nth := 1 + random.IntN(max(1, most[point]))
	if point == crash.InsideRecovery {
		nth += 2 // the first are when the daemon starts, and finds that leases are over: before it is ready
	}
	order := fmt.Sprintf("AUTOPOST_CRASH=%s:%d:%dus", point, nth, random.IntN(6000))
	t.Log(order)
	if point == crash.InsideRecovery { // there must be something to recover
		sourced(t, h)
		before := h.Serve(append(quick, fmt.Sprintf("AUTOPOST_CRASH=%s:%d", crash.ReplyRead, 1+random.IntN(4)))...)
		require.True(t, before.Died(30*time.Second))
	}
	d := h.Serve(append(quick, order)...)
	if point != crash.InsideRecovery {
		sourced(t, h)
	}
	s := newSource(h, d)
	s.send = func(url string, n int) (house.Answer, error) {
		post := []any{"source_ref", fmt.Sprint("cms-", n), "text", fmt.Sprintf("Post %d", n)}
		if n == pushes-1 {
			post[3] = longCaption
			post = append(post, "media", []any{map[string]any{"type": "image", "url": h.WorldURL + "/files/photo-1.png"}})
		}
		return h.TryPush(url, "secret-cms", house.Post(post...))
	}
	done := s.pushAll(t.Context(), 0, pushes)
	require.True(t, d.Died(30*time.Second), "the point was not passed so often: %s", order)
	d = h.Serve(quick...)
	s.url.Store(&d.URL)
	s.wait(done)
	const deliveries = (pushes + items) * 4
	h.Until("all are enqueued", 30*time.Second, func() bool {
		return pgtest.Value[int](h.DB, `select count(*)::int from autopost.deliveries`) >= deliveries
	})
	h.Drained("news")
	toll := h.Judge("news")
	require.Equal(t, deliveries, toll.Deliveries)
	require.Equal(t, deliveries, toll.Sent+toll.Held+toll.Failed)
	require.Zero(t, d.Stop())
	h.Verified()
	return toll
}

// sourced gives the house a source of items; the daemon finds it while it runs, so that it does not die before it is ready.
func sourced(t *testing.T, h *house.House) {
	raw, err := feeds.RSS{Items: items}.Document()
	require.NoError(t, err)
	h.World.Feeds.Set("wire", "application/rss+xml", raw)
	h.Exec(`insert into autopost.pull_sources (workspace_id, source_id, kind, config_json)
		values ('news', 'wire', 'rss', jsonb_build_object('url', $1::text, 'interval_seconds', 1, 'backfill_items', $2::int))`, h.WorldURL+"/feeds/wire", items)
	h.Exec(`insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, source_id) values ('news', 'wire', 'pull_source', 'wire')`)
}

// tally adds up what the walks cost.
type tally struct {
	mu    sync.Mutex
	order []string
	of    map[string]*[5]int
}

func (a *tally) add(point crash.Point, policy string, toll house.Toll) {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := fmt.Sprintf("%-3s %-9s", point, policy)
	if a.of == nil {
		a.of = map[string]*[5]int{}
	}
	if a.of[key] == nil {
		a.order, a.of[key] = append(a.order, key), new([5]int)
	}
	for i, n := range []int{1, toll.Deliveries, toll.Sent, toll.Held + toll.Failed, toll.Extra} {
		a.of[key][i] += n
	}
}

// String is a table: a line a point and policy.
func (a *tally) String() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	lines := []string{"point policy    deaths deliveries sent held copies-too-many"}
	var sum [5]int
	for _, key := range a.order {
		of := a.of[key]
		lines = append(lines, fmt.Sprintf("%s   %6d %10d %4d %4d %15d", key, of[0], of[1], of[2], of[3], of[4]))
		for i := range sum {
			sum[i] += of[i]
		}
	}
	lines = append(lines, fmt.Sprintf("%-13s   %6d %10d %4d %4d %15d", "all", sum[0], sum[1], sum[2], sum[3], sum[4]))
	return strings.Join(lines, "\n")
}

// A migration that dies between the tables and the functions is taken up by the next.
func TestKilledBetweenMigrations(t *testing.T) {
	t.Parallel()
	h := house.New(t, house.Armed)
	h.Exec(`drop schema autopost cascade`)
	died := h.Run([]string{"AUTOPOST_CRASH=" + string(crash.BetweenMigrations)}, "migrate")
	require.Equal(t, -1, died.Code, died.Stderr)
	again := h.Run(nil, "migrate")
	require.Zero(t, again.Code, again.Stderr)
	station(h, 2, house.Channel{})
	s := newSource(h, h.Serve(quick...))
	s.wait(s.pushAll(context.WithoutCancel(t.Context()), 0, 2))
	h.Drained("news")
	require.Equal(t, house.Toll{Deliveries: 4, Sent: 4}, h.Judge("news"))
	h.Verified()
}
