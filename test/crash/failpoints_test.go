package crash

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/failpoint"
	"autopost/internal/sim/feeds"
	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

const (
	// seeds is the number of deaths per point and policy at full size.
	seeds = 20
	// pushes and items are the posts of the two inputs. The last push has a picture and a text that is
	// too long for a caption on Telegram: two steps.
	pushes, items = 4, 3
)

var longCaption = "Picture " + strings.Repeat("and more of it ", 100) + "end"

// most is how often the posts of one run pass a point at least. The test draws the fatal pass from it.
var most = map[failpoint.Point]int{
	failpoint.BeforeReceipt: pushes, failpoint.InsideReceipt: pushes, failpoint.ReceiptCommitted: pushes,
	failpoint.InsideClaim: 4, failpoint.ClaimStarted: 2, failpoint.Started: 12, failpoint.Accepted: 12, failpoint.ReplyRead: 12,
	failpoint.InsideCommit: 4, failpoint.Committed: 4, failpoint.InsideRecovery: 2,
}

// An ordinary program has no failpoints: it does not even parse the variable.
func TestOnlyTheTaggedProgramHasFailpoints(t *testing.T) {
	t.Parallel()
	malformed := []string{"AUTOPOST_FAILPOINT=P1:x"}
	require.Zero(t, harness.New(t).Run(malformed, "--version").Code)
	tagged := harness.New(t, harness.WithFailpoints).Run(malformed, "--version")
	require.NotZero(t, tagged.Code)
	require.Contains(t, tagged.Stderr, "want POINT:NTH:DELAY")
}

// The daemon dies at each failpoint and another one continues. No acknowledged post is lost, and each
// extra copy follows a recorded unknown outcome; channels with the policy hold have no extra copy.
func TestKilledAtEveryPoint(t *testing.T) {
	t.Parallel()
	rounds := 1
	if os.Getenv("AUTOPOST_LONG") != "" {
		rounds = 2 * seeds
	}
	var all tally
	t.Cleanup(func() { t.Log(all.String()) })
	for n, point := range failpoint.Points {
		if point == failpoint.BetweenMigrations || point == failpoint.ActCommitted || slices.Contains(filePoints, point) || slices.Contains(botPoints, point) {
			continue // nothing is sent there, or a test of its own covers it
		}
		for round := range rounds {
			policy := []string{"reconcile", "hold"}[(n+round)%2]
			t.Run(fmt.Sprintf("%s/%s/%d", point, policy, round/2), func(t *testing.T) {
				t.Parallel()
				all.add(point, policy, dieAt(t, point, policy, rand.New(rand.NewPCG(seed, uint64(1000*n+round)))))
			})
		}
	}
}

// dieAt sends posts while a daemon dies at point, then judges the result.
func dieAt(t *testing.T, point failpoint.Point, policy string, random *rand.Rand) harness.Totals {
	h := harness.New(t, harness.WithFailpoints)
	station(h, 4, harness.Channel{Parallel: 2})
	h.Exec(`update autopost.channels set on_unknown = $1`, policy)
	h.Exec(`update autopost.settings set value = '2' where key in ('submission_lease_seconds', 'pull_lease_seconds')`)
	nth := 1 + random.IntN(max(1, most[point]))
	if point == failpoint.InsideRecovery {
		nth += 2 // the first are when the daemon starts, and finds that leases are over: before it is ready
	}
	order := fmt.Sprintf("AUTOPOST_FAILPOINT=%s:%d:%dus", point, nth, random.IntN(6000))
	t.Log(order)
	if point == failpoint.InsideRecovery { // there must be something to recover
		sourced(t, h)
		before := h.ServeUntilDeath(append(quick, fmt.Sprintf("AUTOPOST_FAILPOINT=%s:%d", failpoint.ReplyRead, 1+random.IntN(4)))...)
		require.True(t, before.Died())
	}
	d := h.ServeUntilDeath(append(quick, order)...)
	if point != failpoint.InsideRecovery {
		sourced(t, h)
	}
	s := newSource(h, d)
	s.send = func(url string, n int) (harness.Answer, error) {
		post := []any{"source_ref", fmt.Sprint("cms-", n), "text", fmt.Sprintf("Post %d", n)}
		if n == pushes-1 {
			post[3] = longCaption
			post = append(post, "media", []any{map[string]any{"type": "image", "url": h.WorldURL + "/files/photo-1.png"}})
		}
		return h.TryPush(url, "secret-cms", harness.Post(post...))
	}
	done := s.pushAll(t.Context(), 0, pushes)
	require.True(t, d.Died(), "the point was not passed so often: %s", order)
	d = h.Serve(quick...)
	s.url.Store(&d.URL)
	s.wait(done)
	const deliveries = (pushes + items) * 4
	h.Until("all are enqueued", func() bool {
		return pgtest.Value[int](h.DB, `select count(*)::int from autopost.deliveries`) >= deliveries
	})
	h.Drained("news")
	totals := h.Judge("news")
	require.Equal(t, deliveries, totals.Deliveries)
	require.Equal(t, deliveries, totals.Sent+totals.Held+totals.Failed)
	require.Zero(t, d.Stop())
	h.Verified()
	return totals
}

// sourced adds a source with items.
func sourced(t *testing.T, h *harness.Harness) {
	raw, err := feeds.RSS{Items: items}.Document()
	require.NoError(t, err)
	h.World.Feeds.Set("wire", "application/rss+xml", raw)
	h.Exec(`insert into autopost.pull_sources (workspace_id, source_id, kind, config_json)
		values ('news', 'wire', 'rss', jsonb_build_object('url', $1::text, 'interval_seconds', 1, 'backfill_items', $2::int))`, h.WorldURL+"/feeds/wire", items)
	h.Exec(`insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, source_id) values ('news', 'wire', 'pull_source', 'wire')`)
}

// tally adds up the totals of all runs.
type tally struct {
	mu    sync.Mutex
	order []string
	of    map[string]*[5]int
}

func (a *tally) add(point failpoint.Point, policy string, totals harness.Totals) {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := fmt.Sprintf("%-3s %-9s", point, policy)
	if a.of == nil {
		a.of = map[string]*[5]int{}
	}
	if a.of[key] == nil {
		a.order, a.of[key] = append(a.order, key), new([5]int)
	}
	for i, n := range []int{1, totals.Deliveries, totals.Sent, totals.Held + totals.Failed, totals.Extra} {
		a.of[key][i] += n
	}
}

// String returns a table with one line per point and policy.
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

// A migration dies between the tables and the functions. The next one completes it.
func TestKilledBetweenMigrations(t *testing.T) {
	t.Parallel()
	h := harness.New(t, harness.WithFailpoints)
	h.Exec(`drop schema autopost cascade`)
	died := h.Run([]string{"AUTOPOST_FAILPOINT=" + string(failpoint.BetweenMigrations)}, "migrate")
	require.Equal(t, -1, died.Code, died.Stderr)
	again := h.Run(nil, "migrate")
	require.Zero(t, again.Code, again.Stderr)
	station(h, 2, harness.Channel{})
	s := newSource(h, h.Serve(quick...))
	s.wait(s.pushAll(context.WithoutCancel(t.Context()), 0, 2))
	h.Drained("news")
	require.Equal(t, harness.Totals{Deliveries: 4, Sent: 4}, h.Judge("news"))
	h.Verified()
}
