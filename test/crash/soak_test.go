package crash

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/testing/pgtest"
	"autopost/internal/testing/wait"
	"autopost/test/harness"
	"autopost/test/netfault"
)

// soak is a long run with faults of all kinds: one daemon runs from start to end, another one is killed
// repeatedly, the lines and the platforms have faults.
type soak struct {
	*harness.Harness
	random    *rand.Rand
	variables []string
	lines     []*netfault.Proxy
	steady    *harness.Daemon
	mortal    *harness.Daemon
	source    *source
	// killed has the time of each kill by run.
	killed map[string]time.Time
	run    string // of mortal
	sizes  sizes
}

// patient are leases that a daemon renews in time on a busy machine: no live call is recovered.
var patient = []string{"SENDING_LEASE_SECONDS=30", "MONITOR_INTERVAL_SECONDS=1", "ADAPTER_TIMEOUT_MS=1500"}

// pace sets the intervals of the faults.
type pace struct {
	lasts, fault, line, kill, measure time.Duration
	variables                         []string
}

const (
	soakChannels = 12
	soakRate     = 3 // a channel, posts a second
	// longSoak is the duration for AUTOPOST_LONG=1.
	longSoak = 2 * time.Hour
)

// After hours the daemon and the tables are as large as at the start, no call of a live daemon was
// recovered, and all checks of the short runs hold.
func TestSoak(t *testing.T) {
	t.Parallel()
	p := pace{lasts: 12 * time.Second, fault: time.Second, line: 3 * time.Second, kill: 4 * time.Second, measure: time.Second, variables: patient}
	if pgtest.Long() {
		p = pace{lasts: min(longSoak, time.Until(pgtest.Until(0))), fault: 5 * time.Second, line: time.Minute, kill: 4 * time.Minute, measure: 10 * time.Second}
	}
	s := newSoak(t, p)
	if !pgtest.Long() { // quick is for deliveries alone
		s.Exec(`update autopost.settings set value = '2' where key in ('submission_lease_seconds', 'pull_lease_seconds')`)
	}
	posts := s.lived(t, p)
	s.World.Faults.Clear()
	posts += items
	s.UntilTrue(`select count(*) = $1 from autopost.deliveries`, posts*soakChannels)
	// A call on a silent line ends after a minute, and posts wait for it.
	s.UntilTrue(`select not exists (select 1 from autopost.deliveries where status in ('queued', 'claimed', 'sending'))`)
	s.Drained("news")
	totals := s.Judge("news")
	require.Equal(t, posts-items, s.source.acknowledged())
	require.Equal(t, posts*soakChannels, totals.Deliveries)
	require.Equal(t, posts*soakChannels, totals.Sent+totals.Held+totals.Failed)
	for _, chat := range pgtest.Column[string](s.DB, `select target_id from autopost.channels`) {
		// A post with a picture starts with its upload, so its message arrives later than its slot.
		texts := slices.DeleteFunc(s.Sends(sim.Filter{Chat: chat}), func(e sim.Entry) bool { return len(e.Media) > 0 })
		s.WithinRate("chat "+chat, texts, soakRate)
	}
	slowest, recovered := s.noFalseRecovery(t)
	t.Logf("%s: %d posts, %+v, answers to the source %v; %d daemons killed, %d calls recovered, %s after the death at most",
		p.lasts.Round(time.Second), posts, totals, s.source.answers, len(s.killed), recovered, slowest.Round(100*time.Millisecond))
	t.Log("\n" + s.sizes.String())
	if pgtest.Long() {
		s.sizes.flat(t)
	}
	require.Zero(t, s.steady.Stop())
	s.Verified()
}

func newSoak(t *testing.T, p pace) *soak {
	s := &soak{Harness: harness.New(t, harness.WithConnections(8), harness.WithLogSize(1_000_000)), random: rand.New(rand.NewPCG(seed, 3)), killed: map[string]time.Time{}}
	station(s.Harness, soakChannels, harness.Channel{Rate: soakRate, Parallel: 2})
	database, platforms, variables := lines(t, s.Harness)
	s.lines, s.variables = []*netfault.Proxy{database, platforms}, append(variables, p.variables...)
	sourced(t, s.Harness)
	s.steady = s.Serve(s.variables...)
	s.source = newSource(s.Harness, s.steady)
	s.source.send = func(url string, n int) (harness.Answer, error) {
		post := []any{"source_ref", fmt.Sprint("cms-", n), "text", fmt.Sprintf("Post %d", n)}
		if n%10 == 0 {
			post = append(post, "media", []any{map[string]any{"type": "image", "url": fmt.Sprintf("%s/files/photo-%d.png", s.WorldURL, n)}})
		}
		return s.TryPush(url, "secret-cms", harness.Post(post...))
	}
	s.replace()
	return s
}

// replace starts the next daemon to be killed.
func (s *soak) replace() {
	before := pgtest.Column[string](s.DB, `select run_id from autopost.list_daemons()`)
	s.mortal = s.Serve(s.variables...)
	for _, run := range pgtest.Column[string](s.DB, `select run_id from autopost.list_daemons()`) {
		if !slices.Contains(before, run) {
			s.run = run
		}
	}
}

// lived pushes a post per second and adds faults. It returns the number of acknowledged posts.
func (s *soak) lived(t *testing.T, p pace) (posts int) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	began := time.Now()
	pushed := make(chan int, 1)
	go func() { pushed <- s.push(ctx, p.lasts) }()
	next := map[string]time.Time{"fault": began, "line": began.Add(p.line), "kill": began.Add(p.kill), "measure": began}
	due := func(what string, every time.Duration) bool {
		if time.Now().Before(next[what]) {
			return false
		}
		next[what] = time.Now().Add(every)
		return true
	}
	s.Until("the time is over", func() bool {
		if due("fault", p.fault) {
			s.err()
		}
		if due("line", p.line) {
			s.trouble(ctx)
		}
		if due("kill", p.kill) {
			s.kill()
		}
		if due("measure", p.measure) {
			s.measure(t, time.Since(began))
		}
		select {
		case posts = <-pushed:
			return true
		default:
			return false
		}
	})
	return posts
}

// push pushes a post per second until the time is over and all are acknowledged.
func (s *soak) push(ctx context.Context, lasts time.Duration) (posts int) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for over := time.Now().Add(lasts); time.Now().Before(over); posts++ {
		s.source.push(ctx, posts)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return posts
		}
	}
	return posts
}

// err adds a fault to one call of a platform.
func (s *soak) err() {
	s.World.Faults.Clear()
	one := sim.Fault{Platform: []string{harness.Telegram, harness.MAX}[s.random.IntN(2)], From: 1, To: 1}
	switch s.random.IntN(7) {
	case 0:
		one.Effect, one.Status = sim.EffectStatus, 502
	case 1:
		one.Effect, one.Status, one.RetryAfter = sim.EffectStatus, 429, 1
	case 2:
		one.Effect, one.DelayMS = sim.EffectSlow, 900
	default:
		one.Effect = []sim.Effect{sim.EffectAcceptThenDrop, sim.EffectReset, sim.EffectGarbage, sim.EffectHang}[s.random.IntN(4)]
	}
	s.Fault(one)
}

// trouble adds faults to a line for half a second.
func (s *soak) trouble(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	line := s.lines[s.random.IntN(len(s.lines))]
	line.Swizzle(ctx, s.random, 100*time.Millisecond)
	line.HangUp()
}

// kill ends a daemon as a power failure does and starts another one.
func (s *soak) kill() {
	s.mortal.Kill()
	s.killed[s.run] = time.Now()
	s.replace()
}

// noFalseRecovery fails the test if a call of a live daemon was recovered.
func (s *soak) noFalseRecovery(t *testing.T) (slowest time.Duration, recovered int) {
	t.Helper()
	rows := pgtest.Column[map[string]any](s.DB, `
		select jsonb_build_object('run', e.meta ->> 'run_id', 'at', extract(epoch from e.ts)) from autopost.events e
		where e.action = 'sending_lease_expired' and e.error ->> 'known' = 'false'`)
	for _, row := range rows {
		at := time.UnixMicro(int64(row["at"].(float64) * 1e6))
		died, dead := s.killed[row["run"].(string)]
		if !dead || at.Before(died) {
			t.Errorf("a call of run %s was recovered at %s; %v were killed", row["run"], at, slices.Collect(maps.Keys(s.killed)))
		}
		slowest = max(slowest, at.Sub(died))
	}
	require.Less(t, slowest, wait.Bound)
	return slowest, len(rows)
}
