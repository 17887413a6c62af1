package simulation

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
)

const (
	firstSeed = 20261122
	seeds     = 20
	// mostTime is by when everything must be final, on the simulated clock.
	mostTime = 2 * time.Hour
)

// Two daemons live, stop and die over and over, each call may be lost, and so may each
// answer. In the end all is final; nobody calls with a claim that is not its own; no copy
// comes without an outcome that was recorded as unknown before it, and none where the
// channel says hold; parts come in order, and rates are kept. AUTOPOST_SEED=n plays one.
func TestSimulatedDaysKeepTheInvariants(t *testing.T) {
	first, count, until := uint64(firstSeed), seeds, time.Time{}
	if text := os.Getenv("AUTOPOST_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
		first, count = n, 1
	} else if pgtest.Long() {
		count, until = 1_000_000, pgtest.Until(time.Minute)
	}
	began, simulated, posts, doubts, played := time.Now(), time.Duration(0), 0, 0, 0
	for n := range count {
		if !until.IsZero() && time.Now().After(until) {
			break
		}
		w, took := play(t, first+uint64(n))
		played++
		simulated += took
		posts += len(w.posts)
		for _, r := range w.rows {
			doubts += len(r.unknown)
		}
		if wrongs := w.judge(); len(wrongs) > 0 {
			t.Fatalf("seed %d (AUTOPOST_SEED plays it alone):\n%s", first+uint64(n), strings.Join(wrongs, "\n"))
		}
	}
	t.Logf("%d seeds from %d: %d calls, %d outcomes unknown, %s simulated in %s", played, first, posts, doubts, simulated.Round(time.Second), time.Since(began).Round(time.Millisecond))
}

// A seed plays the same twice, to the nanosecond: what failed once can be looked at. Where
// two deliveries ask at the very same instant, as those of a batch do that failed, the
// scheduler says who is first, and a few seeds in a hundred go two ways.
func TestASeedRepeatsItsRun(t *testing.T) {
	count := seeds
	if pgtest.Long() {
		count = 20 * seeds
	}
	same := 0
	for n := range count {
		one, _ := play(t, uint64(firstSeed+n))
		two, _ := play(t, uint64(firstSeed+n))
		require.NotEmpty(t, one.log)
		if slices.Equal(one.log, two.log) {
			same++
		}
	}
	t.Logf("%d of %d seeds were played again to the nanosecond", same, count)
	require.GreaterOrEqual(t, same, count*9/10)
}

// play lives through a seed, and returns what was left and how long it took there.
func play(t *testing.T, seed uint64) (w *world, took time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		w = newWorld(seed)
		ctx, end := context.WithCancel(t.Context())
		var zombies, slots sync.WaitGroup
		for slot := range 2 {
			slots.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					run := fmt.Sprintf("run-%d-%d", slot, n)
					wait(ctx, time.Duration(w.draw("rest", run).Int64N(int64(5*time.Second))))
					w.live(ctx, t, run, &zombies)
				}
			})
		}
		for !w.over() && time.Since(w.began) < mostTime {
			<-time.After(time.Second)
			w.recover()
		}
		took = time.Since(w.began)
		end()
		slots.Wait()
		zombies.Wait()
	})
	slices.Sort(w.log) // what happens at one instant has no order
	return w, took
}

func (w *world) over() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !slices.ContainsFunc(w.rows, func(r *row) bool { return !r.final() })
}

// judge goes through what the platform saw.
func (w *world) judge() []string {
	wrongs := slices.Clone(w.wrongs)
	wrong := func(format string, args ...any) { wrongs = append(wrongs, fmt.Sprintf(format, args...)) }
	slices.SortFunc(w.posts, func(a, b post) int { return a.at.Compare(b.at) })
	for _, r := range w.rows {
		if !r.final() {
			wrong("%s is not final: %s", r.id, r.status)
		}
		copies := map[string]int{}
		for _, p := range w.posts {
			if p.row != r || !p.accepted {
				continue
			}
			n := copies[p.step]
			if n > 0 && (r.channel.hold || len(r.unknown) < n || !r.unknown[n-1].Before(p.at)) {
				wrong("%s: copy %d of %s began at %s, outcomes were unknown at %v, hold %t", r.id, n+1, p.step, p.at, r.unknown, r.channel.hold)
			}
			copies[p.step]++
			if part := len(copies); p.step != fmt.Sprint("part-", part-1) && n == 0 {
				wrong("%s: %s came as part %d", r.id, p.step, part)
			}
		}
		if r.status == "sent" && len(copies) != r.steps {
			wrong("%s is sent, and the platform has %d of %d parts", r.id, len(copies), r.steps)
		}
	}
	for _, c := range w.channels {
		w.within(c.name, c.every, func(p post) bool { return p.row.channel == c }, wrong)
		w.within("group "+c.group.name, c.group.every, func(p post) bool { return p.row.channel.group == c.group }, wrong)
	}
	return wrongs
}

// within checks that calls keep a rate, but for how late a call may be for its slot.
func (w *world) within(name string, every time.Duration, concerns func(post) bool, wrong func(string, ...any)) {
	var before []time.Time
	for _, p := range w.posts {
		if !concerns(p) {
			continue
		}
		for i, at := range before[max(0, len(before)-10):] {
			n := len(before) - max(0, len(before)-10) - i
			if least := time.Duration(n)*every - tolerance; p.at.Sub(at) < least {
				wrong("%s: %d calls on, only %s later", name, n, p.at.Sub(at))
			}
		}
		before = append(before, p.at)
	}
}
