package crash

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

const seed = 20261120

// quick sets short leases: claims of a dead daemon return within seconds.
var quick = []string{"SENDING_LEASE_SECONDS=4", "MONITOR_INTERVAL_SECONDS=1", "ADAPTER_TIMEOUT_MS=1500"}

// source pushes each post with the same source_ref until it is acknowledged.
type source struct {
	h   *harness.Harness
	url atomic.Pointer[string]
	// send pushes post n.
	send func(url string, n int) (harness.Answer, error)

	mu sync.Mutex
	// answers counts the statuses; 0 means no answer.
	answers map[int]int
	acked   []string // message ids
}

func newSource(h *harness.Harness, d *harness.Daemon) *source {
	s := &source{h: h, answers: map[int]int{}, send: func(url string, n int) (harness.Answer, error) {
		return h.TryPush(url, "secret-cms", harness.Post("source_ref", fmt.Sprint("cms-", n), "text", fmt.Sprintf("Post %d", n)))
	}}
	s.url.Store(&d.URL)
	return s
}

// push sends post n until it is acknowledged or ctx ends.
func (s *source) push(ctx context.Context, n int) {
	pause := time.NewTicker(50 * time.Millisecond)
	defer pause.Stop()
	for {
		answer, err := s.send(*s.url.Load(), n)
		if err != nil {
			answer.Status = 0
		}
		s.mu.Lock()
		s.answers[answer.Status]++
		done := answer.Status == 202 || answer.Status == 200
		if done {
			s.acked = append(s.acked, answer.Text("message_id"))
		}
		s.mu.Unlock()
		if done {
			return
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return
		}
	}
}

func (s *source) acknowledged() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.acked)
}

// pushAll pushes the posts in [from, to), four at a time. It returns a channel that is closed once all
// are acknowledged.
func (s *source) pushAll(ctx context.Context, from, to int) <-chan struct{} {
	done := make(chan struct{})
	var all sync.WaitGroup
	numbers := make(chan int)
	for range 4 {
		all.Go(func() {
			for n := range numbers {
				s.push(ctx, n)
			}
		})
	}
	go func() {
		defer close(done)
		for n := from; n < to; n++ {
			numbers <- n
		}
		close(numbers)
		all.Wait()
	}()
	return done
}

// wait waits for the channel of pushAll.
func (s *source) wait(done <-chan struct{}) {
	s.h.Until("all pushes are acknowledged", func() bool {
		select {
		case <-done:
			return true
		default:
			return false
		}
	})
}

// conserved checks that each of n posts is one message with one delivery per channel.
func (s *source) conserved(t *testing.T, n, channels int) {
	t.Helper()
	require.Len(t, s.acked, n)
	distinct := map[string]bool{}
	for _, id := range s.acked {
		distinct[id] = true
	}
	require.Len(t, distinct, n)
	require.Equal(t, map[string]any{"messages": float64(n), "deliveries": float64(n * channels), "pairs": float64(n * channels)}, s.h.JSON(`
		select jsonb_build_object('messages', (select count(*) from autopost.messages), 'deliveries', (select count(*) from autopost.deliveries),
			'pairs', (select count(*) from (select distinct message_id, channel_id from autopost.deliveries) p))`))
}

// station makes a workspace with channels on two platforms. Every third channel has the policy hold.
func station(h *harness.Harness, channels int, shape harness.Channel) {
	h.Workspace("news")
	h.Endpoint("news", "cms", "secret-cms")
	for i := range channels {
		c := shape
		c.ID, c.Platform = fmt.Sprintf("channel-%02d", i), []string{harness.Telegram, harness.MAX}[i%2]
		if i%3 == 0 {
			c.OnUnknown = "hold"
		}
		h.Channel("news", c)
	}
}

// unclean adds faults: lost answers, resets, invalid answers and hanging calls. All other calls are slow.
func unclean(h *harness.Harness, random *rand.Rand) {
	for n := 5; n < 600; n += 10 + random.IntN(20) {
		effect := []sim.Effect{sim.EffectAcceptThenDrop, sim.EffectReset, sim.EffectGarbage, sim.EffectHang}[random.IntN(4)]
		h.Fault(sim.Fault{From: n, To: n, Effect: effect})
	}
	h.Fault(sim.Fault{Effect: sim.EffectSlow, DelayMS: 120})
}

// The daemon is killed repeatedly while it sends. At the end each delivery is final, and each extra
// copy follows a recorded unknown outcome; channels with the policy hold have no extra copy.
func TestKilledWhileSending(t *testing.T) {
	t.Parallel()
	const channels, rounds, perRound = 18, 6, 6
	h := harness.New(t)
	random := rand.New(rand.NewPCG(seed, 1))
	station(h, channels, harness.Channel{Parallel: 2})
	unclean(h, random)
	d := h.Serve(quick...)
	s := newSource(h, d)
	for round := range rounds {
		sends, acked := len(h.Sends())+10+random.IntN(50), round*perRound+random.IntN(perRound)
		done := s.pushAll(t.Context(), round*perRound, (round+1)*perRound)
		if round%2 == 0 {
			h.Until("enough sends are on their way", func() bool { return len(h.Sends()) >= sends })
		} else { // or, with pushes on their way
			h.Until("enough pushes are acknowledged", func() bool { return s.acknowledged() >= acked })
		}
		d.Kill()
		d = h.Serve(quick...)
		s.url.Store(&d.URL)
		s.wait(done)
	}
	h.World.Faults.Clear()
	h.Drained("news")
	s.conserved(t, rounds*perRound, channels)
	totals := h.Judge("news")
	t.Logf("seed %d: %+v, answers to the source %v", seed, totals, s.answers)
	require.Equal(t, rounds*perRound*channels, totals.Deliveries)
	require.Equal(t, totals.Deliveries, totals.Sent+totals.Held+totals.Failed)
	require.Positive(t, pgtest.Value[int](h.DB, `select count(*)::int from autopost.events where action = 'sending_lease_expired'`), "no kill hit a send")
	require.Positive(t, totals.Held, "no outcome was unknown where it is held")
	require.Zero(t, d.Stop())
	h.Verified()
}

// A stop finishes the calls that have started and releases the other claims. No outcome is unknown.
func TestStoppedWhileSending(t *testing.T) {
	t.Parallel()
	const channels, posts = 12, 12
	h := harness.New(t)
	// Claims with slots up to a second ahead wait: a stop releases them.
	station(h, channels, harness.Channel{Rate: 4, Parallel: 12})
	// Long calls: a slow machine must find several of them running at once.
	h.Fault(sim.Fault{Effect: sim.EffectSlow, DelayMS: 1500})
	d := h.Serve()
	s := newSource(h, d)
	s.wait(s.pushAll(t.Context(), 0, posts))
	for stop := 1; stop <= 3; stop++ {
		h.Until("sends are on their way", func() bool {
			running := 0
			for _, e := range h.Sends() {
				if e.End.IsZero() {
					running++
				}
			}
			return running > 3 && len(h.Sends()) >= stop*channels*2
		})
		require.Zero(t, d.Stop())
		require.Zero(t, pgtest.Value[int](h.DB, `select count(*)::int from autopost.deliveries where status in ('claimed', 'sending')`))
		for _, e := range h.Sends() {
			require.True(t, e.ReplyDelivered, "a call was cut off: %+v", e)
		}
		d = h.Serve()
	}
	require.Positive(t, pgtest.Value[int](h.DB, `select count(*)::int from autopost.events where action = 'released'`))
	h.Drained("news")
	require.Zero(t, pgtest.Value[int](h.DB, `select count(*)::int from autopost.events where action in ('unknown_outcome', 'sending_lease_expired', 'stale_commit')`))
	require.Equal(t, harness.Totals{Deliveries: posts * channels, Sent: posts * channels}, h.Judge("news"))
	h.Verified()
}

// Two daemons share a database: both send, no post is sent twice, and together they keep the rates.
func TestTwoDaemons(t *testing.T) {
	t.Parallel()
	const channels, posts, channelRate, groupRate = 16, 20, 5, 35
	h := harness.New(t, harness.WithConnections(8))
	station(h, channels, harness.Channel{Rate: channelRate, Parallel: 2})
	for _, platform := range []string{harness.Telegram, harness.MAX} {
		h.GroupRate("news", platform, platform, groupRate)
	}
	first, second := h.Serve(), h.Serve()
	one, two := newSource(h, first), newSource(h, second)
	done := one.pushAll(t.Context(), 0, posts)
	two.wait(two.pushAll(t.Context(), 0, posts)) // the same posts through the other daemon
	one.wait(done)
	h.Drained("news")
	require.Equal(t, harness.Totals{Deliveries: posts * channels, Sent: posts * channels}, h.Judge("news"))
	require.Equal(t, map[string]any{"messages": float64(posts), "runs": 2.0}, h.JSON(`select jsonb_build_object(
		'messages', (select count(*) from autopost.messages),
		'runs', (select count(distinct e.meta ->> 'run_id') from autopost.events e where e.action = 'send_attempt'))`))
	for _, chat := range pgtest.Column[string](h.DB, `select target_id from autopost.channels`) {
		h.WithinRate("chat "+chat, h.Sends(sim.Filter{Chat: chat}), channelRate)
	}
	for _, platform := range []string{harness.Telegram, harness.MAX} {
		h.WithinRate("group "+platform, h.Sends(sim.Filter{Platform: platform}), groupRate)
	}
	h.Verified()
}

// The database closes all connections under load, several times. A source gets 503 at worst, no post
// is lost, and each extra copy follows a recorded unknown outcome.
func TestConnectionsCut(t *testing.T) {
	t.Parallel()
	const channels, posts, cuts = 12, 40, 6
	h := harness.New(t, harness.AsEngine)
	random := rand.New(rand.NewPCG(seed, 2))
	station(h, channels, harness.Channel{Parallel: 2})
	h.Fault(sim.Fault{Effect: sim.EffectSlow, DelayMS: 60})
	d := h.Serve(quick...)
	s := newSource(h, d)
	done := s.pushAll(t.Context(), 0, posts)
	for range cuts {
		until := len(h.Sends()) + 10 + random.IntN(50)
		h.Until("sends go on", func() bool { return len(h.Sends()) >= until })
		cut := pgtest.Value[int](h.DB, `select count(pg_terminate_backend(pid))::int from pg_stat_activity
			where datname = current_database() and application_name <> 'pgtest'`)
		require.Positive(t, cut)
	}
	s.wait(done)
	h.Drained("news")
	for status := range s.answers {
		require.Contains(t, []int{200, 202, 503}, status)
	}
	s.conserved(t, posts, channels)
	totals := h.Judge("news")
	t.Logf("seed %d: %+v, answers to the source %v", seed, totals, s.answers)
	require.Equal(t, posts*channels, totals.Deliveries)
	require.Equal(t, posts*channels, totals.Sent+totals.Held+totals.Failed)
	require.Zero(t, d.Stop())
	h.Verified()
}
