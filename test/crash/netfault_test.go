package crash

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/test/harness"
	"autopost/test/netfault"
)

// lines puts a proxy in front of the database and one in front of the platforms. The variables make a
// daemon use them.
func lines(t *testing.T, h *harness.Harness) (database, platforms *netfault.Proxy, variables []string) {
	t.Helper()
	database, address := h.DatabaseProxy()
	platforms = netfault.Open(t, "tcp", strings.TrimPrefix(h.WorldURL, "http://"))
	return database, platforms, []string{
		address,
		"AUTOPOST_TELEGRAM_API_URL=http://" + platforms.Addr() + "/telegram", "AUTOPOST_MAX_API_URL=http://" + platforms.Addr() + "/max",
	}
}

// swizzle applies one fault after another.
const swizzle netfault.Kind = "swizzle"

// The line to the database or to the platforms is slow, cut, reset, silent, or cut after the request.
// A source gets 503 at worst, no post is lost, and each extra copy follows a recorded unknown outcome.
func TestBadLines(t *testing.T) {
	t.Parallel()
	onBadLines(t, 10_000, []netfault.Kind{swizzle, netfault.Deaf}, troubled)
}

// onBadLines plays a scenario on a bad line to the database and on one to the platforms, for each kind of fault. A long
// run takes all kinds, with many seeds that start at first.
func onBadLines(t *testing.T, first int, kinds []netfault.Kind, play func(t *testing.T, kind netfault.Kind, side int, random *rand.Rand)) {
	rounds := 1
	if os.Getenv("AUTOPOST_LONG") != "" {
		rounds, kinds = seeds, append(netfault.Kinds, swizzle)
	}
	for n, kind := range kinds {
		for side, name := range []string{"database", "platforms"} {
			for round := range rounds {
				t.Run(fmt.Sprintf("%s/%s/%d", name, kind, round), func(t *testing.T) {
					t.Parallel()
					play(t, kind, side, rand.New(rand.NewPCG(seed, uint64(first+1000*n+100*side+round))))
				})
			}
		}
	}
}

func troubled(t *testing.T, kind netfault.Kind, side int, random *rand.Rand) {
	const channels, posts = 6, 16
	h := harness.New(t, harness.WithConnections(8))
	station(h, channels, harness.Channel{Parallel: 2})
	h.Fault(sim.Fault{Effect: sim.EffectSlow, DelayMS: 40})
	database, platforms, variables := lines(t, h)
	line := []*netfault.Proxy{database, platforms}[side]
	d := h.Serve(append(variables, quick...)...)
	s := newSource(h, d)
	done := s.pushAll(t.Context(), 0, posts)
	h.Until("sends go on", func() bool { return len(h.Sends()) >= 3+random.IntN(20) })
	trouble(t, line, kind, random)
	s.wait(done)
	h.Drained("news")
	for status := range s.answers {
		require.Contains(t, []int{0, 200, 202, 503}, status)
	}
	s.conserved(t, posts, channels)
	totals := h.Judge("news")
	t.Logf("%d connections were disturbed; %+v; answers to the source %v", line.Disturbed(), totals, s.answers)
	require.Equal(t, posts*channels, totals.Sent+totals.Held+totals.Failed)
	require.Zero(t, d.Stop())
	h.Verified()
}

// trouble makes faults on a line for one to two and a half seconds.
func trouble(t *testing.T, line *netfault.Proxy, kind netfault.Kind, random *rand.Rand) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1000+random.IntN(1500))*time.Millisecond)
	defer cancel()
	if kind == swizzle {
		line.Swizzle(ctx, random, 150*time.Millisecond)
	} else {
		line.Make(netfault.Fault{Kind: kind, After: random.Int64N(2 << 10), Delay: time.Duration(1+random.IntN(10)) * time.Millisecond})
		<-ctx.Done()
		line.Mend()
	}
	line.HangUp()
}
