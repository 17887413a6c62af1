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
	"autopost/test/house"
	"autopost/test/wire"
)

// lines puts a line in front of the database and one in front of the platforms, and
// returns the variables that tell a daemon so.
func lines(t *testing.T, h *house.House) (database, platforms *wire.Line, variables []string) {
	t.Helper()
	database, address := h.Wired()
	platforms = wire.Open(t, "tcp", strings.TrimPrefix(h.WorldURL, "http://"))
	return database, platforms, []string{
		address,
		"AUTOPOST_TELEGRAM_API_URL=http://" + platforms.Addr() + "/telegram", "AUTOPOST_MAX_API_URL=http://" + platforms.Addr() + "/max",
	}
}

// swizzle is one trouble after another.
const swizzle wire.Kind = "swizzle"

// The line to the database, or that to the platforms, is slow, cut, reset, silent, or
// cut after what was asked has passed. Sources are told to come again at worst; nothing is lost; each
// copy too many follows a recorded doubt; and when the line is mended, all flows again.
func TestBadLines(t *testing.T) {
	t.Parallel()
	rounds, kinds := 1, []wire.Kind{swizzle, wire.Deaf}
	if os.Getenv("AUTOPOST_LONG") != "" {
		rounds, kinds = seeds, append(wire.Kinds, swizzle)
	}
	for n, kind := range kinds {
		for side, name := range []string{"database", "platforms"} {
			for round := range rounds {
				t.Run(fmt.Sprintf("%s/%s/%d", name, kind, round), func(t *testing.T) {
					t.Parallel()
					random := rand.New(rand.NewPCG(seed, uint64(10_000+1000*n+100*side+round)))
					troubled(t, kind, side, random)
				})
			}
		}
	}
}

func troubled(t *testing.T, kind wire.Kind, side int, random *rand.Rand) {
	const channels, posts = 6, 16
	h := house.New(t)
	station(h, channels, house.Channel{Parallel: 2})
	h.Fault(sim.Fault{Effect: sim.EffectSlow, DelayMS: 40})
	database, platforms, variables := lines(t, h)
	line := []*wire.Line{database, platforms}[side]
	d := h.Serve(append(variables, quick...)...)
	s := newSource(h, d)
	done := s.pushAll(t.Context(), 0, posts)
	h.Until("sends go on", 30*time.Second, func() bool { return len(h.Sends()) >= 3+random.IntN(20) })
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1000+random.IntN(1500))*time.Millisecond)
	defer cancel()
	if kind == swizzle {
		line.Swizzle(ctx, random, 150*time.Millisecond)
	} else {
		line.Make(wire.Trouble{Kind: kind, After: random.Int64N(2 << 10), Delay: time.Duration(1+random.IntN(10)) * time.Millisecond})
		<-ctx.Done()
		line.Mend()
	}
	line.HangUp()
	s.wait(done)
	h.Drained("news")
	for status := range s.answers {
		require.Contains(t, []int{0, 200, 202, 503}, status)
	}
	s.conserved(t, posts, channels)
	toll := h.Judge("news")
	t.Logf("%d connections were troubled; %+v; answers to the source %v", line.Troubled(), toll, s.answers)
	require.Equal(t, posts*channels, toll.Sent+toll.Held+toll.Failed)
	require.Zero(t, d.Stop())
	h.Verified()
}
