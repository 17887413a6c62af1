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

	"autopost/internal/pgtest"
	"autopost/internal/sim"
	"autopost/test/house"
)

func TestMain(m *testing.M) { house.Main(m) }

const seed = 20261120

// quick are short leases, so that what a dead daemon held comes back within seconds.
var quick = []string{"SENDING_LEASE_SECONDS=4", "MONITOR_INTERVAL_SECONDS=1", "ADAPTER_TIMEOUT_MS=1500"}

// source pushes posts as a careful sender does: until each is acknowledged, over
// again with the same source_ref.
type source struct {
	h   *house.House
	url atomic.Pointer[string]
	// send brings post n, the same way each time.
	send func(url string, n int) (house.Answer, error)

	mu sync.Mutex
	// answers counts the statuses that were seen; 0 stands for no answer at all.
	answers map[int]int
	acked   []string // message ids
}

func newSource(h *house.House, d *house.Daemon) *source {
	s := &source{h: h, answers: map[int]int{}, send: func(url string, n int) (house.Answer, error) {
		return h.TryPush(url, "secret-cms", house.Post("source_ref", fmt.Sprint("cms-", n), "text", fmt.Sprintf("Post %d", n)))
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

// pushAll pushes posts from to to, a few at once, and returns a channel that is
// closed when all are acknowledged.
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

// wait waits for what pushAll returned.
func (s *source) wait(done <-chan struct{}) {
	s.h.Until("all pushes are acknowledged", time.Minute, func() bool {
		select {
		case <-done:
			return true
		default:
			return false
		}
	})
}

// conserved checks that each of n posts is one message with one delivery for each
// of so many channels.
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

// station is a workspace with many channels over both platforms; every third holds
// what has an unknown outcome.
func station(h *house.House, channels int, shape house.Channel) {
	h.Workspace("news")
	h.Endpoint("news", "cms", "secret-cms")
	for i := range channels {
		c := shape
		c.ID, c.Platform = fmt.Sprintf("channel-%02d", i), []string{house.Telegram, house.MAX}[i%2]
		if i%3 == 0 {
			c.OnUnknown = "hold"
		}
		h.Channel("news", c)
	}
}

// unclean are the receivers on a bad day: some answers are lost after the post was
// taken, some connections are reset before, all the rest is slow.
func unclean(h *house.House, random *rand.Rand) {
	for n := 5; n < 600; n += 10 + random.IntN(20) {
		effect := []sim.Effect{sim.EffectAcceptThenDrop, sim.EffectReset, sim.EffectGarbage, sim.EffectHang}[random.IntN(4)]
		h.Fault(sim.Fault{From: n, To: n, Effect: effect})
	}
	h.Fault(sim.Fault{Effect: sim.EffectSlow, DelayMS: 120})
}

// The daemon is killed again and again in the middle of its sends. In the end
// everything is final, nothing is lost, and each copy too many follows an outcome
// that was recorded as unknown; where the channel says hold, there is none.
func TestKilledWhileSending(t *testing.T) {
	t.Parallel()
	const channels, rounds, perRound = 18, 6, 6
	h := house.New(t)
	random := rand.New(rand.NewPCG(seed, 1))
	station(h, channels, house.Channel{Parallel: 2})
	unclean(h, random)
	d := h.Serve(quick...)
	s := newSource(h, d)
	for round := range rounds {
		sends, acked := len(h.Sends())+10+random.IntN(50), round*perRound+random.IntN(perRound)
		done := s.pushAll(t.Context(), round*perRound, (round+1)*perRound)
		if round%2 == 0 {
			h.Until("enough sends are on their way", 30*time.Second, func() bool { return len(h.Sends()) >= sends })
		} else { // or, with pushes on their way
			h.Until("enough pushes are acknowledged", 30*time.Second, func() bool { return s.acknowledged() >= acked })
		}
		d.Kill()
		d = h.Serve(quick...)
		s.url.Store(&d.URL)
		s.wait(done)
	}
	h.World.Faults.Clear()
	h.Drained("news")
	s.conserved(t, rounds*perRound, channels)
	toll := h.Judge("news")
	t.Logf("seed %d: %+v, answers to the source %v", seed, toll, s.answers)
	require.Equal(t, rounds*perRound*channels, toll.Deliveries)
	require.Equal(t, toll.Deliveries, toll.Sent+toll.Held+toll.Failed)
	require.Positive(t, pgtest.Value[int](h.DB, `select count(*)::int from autopost.events where action = 'sending_lease_expired'`), "no kill hit a send")
	require.Positive(t, toll.Held, "no outcome was unknown where it is held")
	require.Zero(t, d.Stop())
	h.Verified()
}

// A stop drains: what has begun is finished, what has not is handed back, and
// nobody is left in doubt.
func TestStoppedWhileSending(t *testing.T) {
	t.Parallel()
	const channels, posts = 12, 12
	h := house.New(t)
	// Slots a second ahead are claimed and wait: those are what is handed back.
	station(h, channels, house.Channel{Rate: 4, Parallel: 4})
	h.Fault(sim.Fault{Effect: sim.EffectSlow, DelayMS: 300})
	d := h.Serve()
	s := newSource(h, d)
	s.wait(s.pushAll(t.Context(), 0, posts))
	for stop := 1; stop <= 3; stop++ {
		h.Until("sends are on their way", 20*time.Second, func() bool {
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
	require.Equal(t, house.Toll{Deliveries: posts * channels, Sent: posts * channels}, h.Judge("news"))
	h.Verified()
}

// Two daemons share a database: both work, nothing goes out twice, and the rates
// are kept by both together.
func TestTwoDaemons(t *testing.T) {
	const channels, posts, channelRate, groupRate = 16, 20, 5, 35
	h := house.New(t)
	station(h, channels, house.Channel{Rate: channelRate, Parallel: 2})
	for _, platform := range []string{house.Telegram, house.MAX} {
		h.GroupRate("news", platform, platform, groupRate)
	}
	first, second := h.Serve(), h.Serve()
	one, two := newSource(h, first), newSource(h, second)
	done := one.pushAll(t.Context(), 0, posts)
	two.wait(two.pushAll(t.Context(), 0, posts)) // the same posts through the other daemon
	one.wait(done)
	h.Drained("news")
	require.Equal(t, house.Toll{Deliveries: posts * channels, Sent: posts * channels}, h.Judge("news"))
	require.Equal(t, map[string]any{"messages": float64(posts), "runs": 2.0}, h.JSON(`select jsonb_build_object(
		'messages', (select count(*) from autopost.messages),
		'runs', (select count(distinct e.meta ->> 'run_id') from autopost.events e where e.action = 'send_attempt'))`))
	for _, chat := range pgtest.Column[string](h.DB, `select target_id from autopost.channels`) {
		h.WithinRate("chat "+chat, h.Sends(sim.Filter{Chat: chat}), channelRate, epsilon)
	}
	for _, platform := range []string{house.Telegram, house.MAX} {
		h.WithinRate("group "+platform, h.Sends(sim.Filter{Platform: platform}), groupRate, epsilon)
	}
	h.Verified()
}

// epsilon is how much closer two requests may arrive than their slots are apart: a
// call may begin 100 ms after its slot, and the way to the receiver is not always
// equally long on a machine that is busy.
const epsilon = 250 * time.Millisecond

// The database cuts all connections under load, several times. Sources are told to
// come again at worst, nothing is lost, and nothing goes out twice without a record
// of the doubt.
func TestConnectionsCut(t *testing.T) {
	t.Parallel()
	const channels, posts, cuts = 12, 40, 6
	h := house.New(t, house.AsEngine)
	random := rand.New(rand.NewPCG(seed, 2))
	station(h, channels, house.Channel{Parallel: 2})
	h.Fault(sim.Fault{Effect: sim.EffectSlow, DelayMS: 60})
	d := h.Serve(quick...)
	s := newSource(h, d)
	done := s.pushAll(t.Context(), 0, posts)
	for range cuts {
		until := len(h.Sends()) + 10 + random.IntN(50)
		h.Until("sends go on", 30*time.Second, func() bool { return len(h.Sends()) >= until })
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
	toll := h.Judge("news")
	t.Logf("seed %d: %+v, answers to the source %v", seed, toll, s.answers)
	require.Equal(t, posts*channels, toll.Deliveries)
	require.Equal(t, posts*channels, toll.Sent+toll.Held+toll.Failed)
	require.Zero(t, d.Stop())
	h.Verified()
}
