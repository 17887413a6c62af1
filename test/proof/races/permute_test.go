package races_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
)

// seed makes what a sample chooses repeatable.
func seed(t *testing.T) *rand.Rand {
	t.Helper()
	n, err := strconv.ParseUint(cmp.Or(os.Getenv("AUTOPOST_SEED"), fmt.Sprint(time.Now().UnixNano())), 10, 64)
	require.NoError(t, err)
	t.Logf("AUTOPOST_SEED=%d", n)
	return rand.New(rand.NewPCG(n, 0))
}

// interleavings lists all orders in which k actors can take their two steps.
func interleavings(k int) (orders [][]int) {
	var grow func(order []int)
	grow = func(order []int) {
		if len(order) == 2*k {
			orders = append(orders, slices.Clone(order))
			return
		}
		for n := range k {
			taken := 0
			for _, m := range order {
				if m == n {
					taken++
				}
			}
			if taken < 2 {
				grow(append(order, n))
			}
		}
	}
	grow(nil)
	return orders
}

// mostLooks bounds the looks at the clock at which an act is stopped: no act here has more.
const mostLooks = 40

// tally counts what was played.
type tally struct{ groups, meetings, stops, verified, trouble atomic.Int64 }

// note reports what went wrong in a meeting; one mistake can show in very many.
func (s *stage) note(c *tally, m meeting, trouble []string) {
	for _, what := range trouble {
		if c.trouble.Add(1) <= 20 {
			s.t.Errorf("%s:\n\t%s", m, what)
		}
	}
}

// inParts reports whether acts may overlap so that no order of whole acts gives the same result:
//   - a claim skips locked channels, and these may be closed before the next claim;
//   - a batch of calls starts each call alone, with an active or a paused workspace;
//   - each post of an array goes to the channels that are enabled at that moment;
//   - a refused credential pauses its unlocked channels at once, and the others later.
func inParts(acts []act) bool {
	has := func(names ...string) bool {
		return slices.ContainsFunc(acts, func(a act) bool { return slices.Contains(names, a.function) || slices.Contains(names, a.variant) })
	}
	return len(acts) > 2 && slices.ContainsFunc(acts, func(a act) bool { return a.again }) ||
		has("claim_deliveries", "claim_and_start") && has("disable_group", "channels: a pause") ||
		has("start_call_batch") && has("workspace: paused") ||
		has("credential refused") && len(acts) > 1 ||
		has("enqueue_messages_and_deliveries_batch", "receive_push", "ingest_pull_chunk") && has("disable_group")
}

// meet lets acts meet in all orders of their steps, then with each stopped wherever it looks at the clock or comes to one
// of the rows, while the others go by. No deadlock, no error, nothing that verify finds; and what stands in the end is what one of the orders
// without overlap gives. After the deadline it stops where it is.
func (s *stage) meet(acts []act, c *tally, deadline time.Time) {
	c.groups.Add(1)
	serial := map[string]bool{}
	orders := interleavings(len(acts))
	overlaps := func(order []int) int {
		for n := 0; n < len(order); n += 2 {
			if order[n] != order[n+1] {
				return 1
			}
		}
		return 0
	}
	slices.SortStableFunc(orders, func(a, b []int) int { return overlaps(a) - overlaps(b) })
	partial := inParts(acts)
	play := func(m meeting) bool {
		trouble, stopped := s.play(m)
		if !stopped && (m.look > 0 || m.row != "") {
			return false
		}
		if overlaps(m.order) == 0 {
			serial[s.state] = true
		}
		if !serial[s.state] && !partial {
			trouble = append(trouble, "no order without overlap gives:\n"+difference(s.state, serial))
		}
		// verify costs more than a meeting: it is shown every tenth, and what is strange already.
		if s.played%10 == 0 || len(trouble) > 0 {
			trouble = append(trouble, s.verify()...)
		}
		s.note(c, m, trouble)
		return stopped
	}
	for _, order := range orders {
		if overlaps(order) > 0 && time.Now().After(deadline) {
			return
		}
		play(meeting{acts: acts, order: order})
		c.meetings.Add(1)
	}
	for first := range acts {
		order := []int{first}
		for n := range acts {
			if n != first {
				order = append(order, n, n)
			}
		}
		order = append(order, first)
		for look := 1; look < mostLooks && time.Now().Before(deadline) && play(meeting{acts: acts, order: order, look: look}); look++ {
			c.stops.Add(1)
		}
		for _, row := range rows {
			if time.Now().Before(deadline) && play(meeting{acts: acts, order: order, row: row}) {
				c.stops.Add(1)
			}
		}
	}
}

// playAll lets groups of acts meet on two stages, each at least one; the deadline ends a sample.
func playAll(t *testing.T, groups [][]act, deadline time.Time) {
	t.Helper()
	c := &tally{}
	next := atomic.Int64{}
	for n := range 2 {
		t.Run(fmt.Sprint("stage ", n), func(t *testing.T) {
			t.Parallel()
			s := open(t)
			defer func() { c.verified.Add(s.verified) }()
			for at := next.Add(1) - 1; at < int64(len(groups)); at = next.Add(1) - 1 {
				s.meet(groups[at], c, deadline)
				if time.Now().After(deadline) {
					return
				}
			}
		})
	}
	t.Cleanup(func() {
		t.Logf("%d groups of %d met: %d interleavings, %d stops inside a function, %d ends shown to verify, %d findings",
			c.groups.Load(), len(groups), c.meetings.Load(), c.stops.Load(), c.verified.Load(), c.trouble.Load())
	})
}

// Every act meets every act, itself too.
func TestPairsMeet(t *testing.T) {
	t.Parallel()
	var pairs [][]act
	for n, a := range acts {
		for _, b := range acts[n:] {
			pairs = append(pairs, []act{a, b})
		}
	}
	seed(t).Shuffle(len(pairs), func(i, j int) { pairs[i], pairs[j] = pairs[j], pairs[i] })
	playAll(t, pairs, pgtest.Until(10*time.Second))
}

// triples are acts of which three are needed to close a ring: each holds what the next wants.
var triples = [][3]string{
	{"enqueue_messages_and_deliveries_batch fresh, failed, dead", "enqueue_messages_and_deliveries_batch dead, failed, fresh", "manual_requeue"},
	{"enqueue_messages_and_deliveries what failed", "manual_requeue", "claim_deliveries"},
	{"receive_push with a source_ref", "receive_push backwards, one without a source_ref", "ingest_pull_chunk two items"},
	{"claim_deliveries", "commit_outcome_batch", "enqueue_messages_and_deliveries a fresh post"},
	{"claim_deliveries", "claim_deliveries", "release_claims"},
	{"claim_deliveries", "start_call", "release_lost"},
	{"claim_and_start", "commit_outcome_batch", "channels: a pause"},
	{"claim_and_start", "claim_and_start", "release_lost"},
	{"start_call", "rotate_auth of a channel at work", "commit_outcome platform limited"},
	{"start_call late for its slot", "commit_outcome another channel limited", "commit_outcome channel limited"},
	{"start_call_batch", "commit_outcome_batch", "disable_group"},
	{"recover_sending_leases", "commit_outcome after the lease", "release_stale"},
	{"recover_sending_leases", "start_call_batch", "claim_deliveries"},
	{"schedule_retry_batch", "fail_permanent_batch", "record_series_progress"},
	{"enable_group", "rotate_auth of a channel at rest", "claim_deliveries"},
	{"resolve_unknown found", "skip_deliveries", "resolve_unknown absent"},
	{"channels: more at once", "enqueue_messages_and_deliveries a fresh post", "claim_deliveries"},
	{"limit: lifted", "claim_deliveries", "commit_outcome platform down"},
	{"reschedule", "claim_deliveries", "skip_deliveries"},
	{"replace_post", "claim_deliveries", "reschedule to the next free slots"},
	{"replace_post", "reschedule_post", "skip_post"},
	{"replace_post", "replace_post by what failed", "enqueue_messages_and_deliveries what failed"},
	{"commit_submission fetched", "claim_submissions", "enqueue_messages_and_deliveries a fresh post"},
}

// Three at once, for cases that two cannot show.
func TestTriplesMeet(t *testing.T) {
	t.Parallel()
	var groups [][]act
	for _, names := range triples {
		var group []act
		for _, name := range names {
			at := slices.IndexFunc(acts, func(a act) bool { return strings.TrimSpace(a.String()) == name })
			require.GreaterOrEqual(t, at, 0, name)
			group = append(group, acts[at])
		}
		groups = append(groups, group)
	}
	seed(t).Shuffle(len(groups), func(i, j int) { groups[i], groups[j] = groups[j], groups[i] })
	playAll(t, groups, pgtest.Until(5*time.Second))
}

// difference shows the lines in which a state differs from each of others.
func difference(state string, others map[string]bool) (diff string) {
	for other := range others {
		diff += "\tfrom one:\n" + lineDiff(other, state)
	}
	return diff
}

func lineDiff(want, have string) (diff string) {
	left := map[string]int{}
	for line := range strings.Lines(want) {
		left[line]++
	}
	for line := range strings.Lines(have) {
		if left[line]--; left[line] < 0 {
			diff += "\t+ " + line
		}
	}
	for line := range strings.Lines(want) {
		if left[line] > 0 {
			left[line]--
			diff += "\t- " + line
		}
	}
	return diff + "\n"
}
