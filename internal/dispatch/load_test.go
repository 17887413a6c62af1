package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/dispatch"
	"autopost/internal/worker"
)

// batchesOf returns the sizes of the batches of a call.
func (w *fakes) batchesOf(what string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var sizes []string
	for _, c := range w.calls {
		if size, ok := strings.CutPrefix(c.what, what+" of "); ok {
			sizes = append(sizes, size)
		}
	}
	return sizes
}

func TestStartsAndOutcomesAreMergedUnderLoad(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakes) {
		w.put("acme", 1)
		stop := w.start(dispatch.Config{})
		after(0)
		require.Equal(t, []string{"1"}, w.batchesOf("start"))
		require.Equal(t, []string{"1"}, w.batchesOf("commit"))
		stop()
	})
	bubble(t, func(t *testing.T, w *fakes) {
		w.put("acme", 20)
		var first sync.Once
		w.onStart = func(string) (dispatch.Start, error) {
			first.Do(func() { <-time.After(10 * time.Millisecond) })
			return dispatch.Start{Applied: true, Deadline: 5 * time.Minute}, nil
		}
		defer w.start(dispatch.Config{})()
		after(time.Second)
		require.Equal(t, []string{"1", "19"}, w.batchesOf("start"), "the second batch has those that arrived during the first")
		require.Len(t, w.outcomes, 20)
	})
}

func TestSlowDatabaseCallsDelayNoOtherWorkspace(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakes) {
		w.put("acme", 5)
		w.put("zeta", 1)
		w.onStart = func(id string) (dispatch.Start, error) {
			if strings.HasPrefix(id, "acme") {
				<-time.After(5 * time.Second)
			}
			return dispatch.Start{Applied: true, Deadline: 5 * time.Minute}, nil
		}
		defer w.start(dispatch.Config{})()
		after(time.Second)
		require.Less(t, w.when("send zeta-0")[0], 10*time.Millisecond)
	})
}

// The claims of one platform are slow, in eight workspaces.
func TestASlowClaimDelaysNoOtherPlatformOrWorkspace(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakes) {
		for n := range 8 {
			w.put(fmt.Sprint("acme", n), 1, on(autopost.MAX))
		}
		w.put("acme7", 1)
		w.put("zeta", 1)
		w.onClaimed = func(rows []autopost.Delivery) {
			if len(rows) > 0 && rows[0].Platform == autopost.MAX {
				<-time.After(5 * time.Second)
			}
		}
		defer w.start(dispatch.Config{LimitPerWorkspace: 10})()
		after(time.Second)
		require.Empty(t, w.when("send acme0-0"))
		for _, id := range []string{"acme7-1", "zeta-0"} {
			require.Len(t, w.when("send "+id), 1, id)
			require.Less(t, w.when("send " + id)[0], 100*time.Millisecond, id)
		}
		after(time.Minute)
		w.look(func() { require.Len(t, w.outcomes, 10) })
	})
}

func TestADeadPlatformLeavesCapacityForOtherPlatforms(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakes) {
		for n := range 10 {
			w.put("acme", 100, on(autopost.MAX), group(fmt.Sprint("g", n)))
			w.put("bolt", 100, on(autopost.MAX), group(fmt.Sprint("g", n)))
		}
		w.onSend = func(ctx context.Context, c autopost.Call) autopost.Outcome {
			if c.Delivery.Platform == autopost.MAX {
				return untilCancelled(ctx, c)
			}
			w.note("sent")
			return autopost.Sent("77", time.Time{}, nil)
		}
		defer w.start(dispatch.Config{Senders: 64})()
		after(30 * time.Second)
		w.put("acme", 2)
		w.wake <- struct{}{}
		after(10 * time.Millisecond)
		require.Len(t, w.when("sent"), 2)
	})
}

// A running claim reserves the capacity that it may use.
func TestRunningClaimsReserveTheirCapacity(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakes) {
		for n := range 8 {
			w.put(fmt.Sprint("acme", n), 40)
		}
		w.onClaimed = func([]autopost.Delivery) { <-time.After(10 * time.Millisecond) }
		w.onSend = func(context.Context, autopost.Call) autopost.Outcome {
			<-time.After(time.Second)
			return autopost.Sent("77", time.Time{}, nil)
		}
		defer w.start(dispatch.Config{Senders: 16, LimitPerWorkspace: 16})()
		after(time.Minute)
		w.look(func() {
			require.LessOrEqual(t, w.most, 16)
			require.Len(t, w.outcomes, 8*40)
		})
	})
}

// The database refuses every batch with one of the deliveries.
func TestARefusedItemFailsNoOtherOfItsBatch(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakes) {
		w.put("acme", 20)
		var first sync.Once
		w.onStart = func(id string) (dispatch.Start, error) {
			first.Do(func() { <-time.After(10 * time.Millisecond) }) // the others gather
			if id == "acme-13" {
				return dispatch.Start{}, fmt.Errorf("%w: it cannot be stored", worker.ErrRefused)
			}
			return dispatch.Start{Applied: true, Deadline: 5 * time.Minute}, nil
		}
		defer w.start(dispatch.Config{Lease: 30 * time.Second, AdapterTimeout: time.Second})()
		after(50 * time.Millisecond)
		require.Len(t, w.outcomes, 19)
		require.Empty(t, w.when("send acme-13"))
		after(time.Minute)
		o, _ := w.outcome("acme-13")
		require.Equal(t, "not_called", o.Error.Code)
	})
}

func TestAnUnansweredBatchIsNotSplit(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakes) {
		w.put("acme", 3)
		w.onStart = func(string) (dispatch.Start, error) {
			<-time.After(10 * time.Millisecond)
			if time.Since(w.began) < 60*time.Millisecond {
				return dispatch.Start{}, errGone
			}
			return dispatch.Start{Applied: true, Deadline: 5 * time.Minute}, nil
		}
		defer w.start(dispatch.Config{})()
		after(50 * time.Millisecond)
		require.Equal(t, []string{"1", "2"}, w.batchesOf("start"), "no item caused the error")
		after(time.Second)
		require.Len(t, w.outcomes, 3)
	})
}

func group(name string) func(*autopost.Delivery) {
	return func(d *autopost.Delivery) { d.RateGroup = name }
}

func on(platform autopost.Platform) func(*autopost.Delivery) {
	return func(d *autopost.Delivery) { d.Platform = platform }
}

func TestNoKeyTakesAllCapacity(t *testing.T) {
	hang := func(w *fakes, slow string) func(context.Context, autopost.Call) autopost.Outcome {
		return func(ctx context.Context, c autopost.Call) autopost.Outcome {
			if strings.Contains(c.Delivery.DeliveryID+c.Delivery.RateGroup+string(c.Delivery.Platform), slow) {
				return untilCancelled(ctx, c)
			}
			w.note("sent")
			return autopost.Sent("77", time.Time{}, nil)
		}
	}
	for name, c := range map[string]struct {
		slow string
		put  func(w *fakes)
	}{
		"a group": {"dead", func(w *fakes) { w.put("acme", 1000, group("dead")) }},
		"a workspace with many groups": {"acme", func(w *fakes) {
			for n := range 1000 {
				w.put("acme", 1, group(fmt.Sprint("g", n)))
			}
		}},
		"a platform of many workspaces": {"telegram", func(w *fakes) {
			for n := range 200 {
				w.put(fmt.Sprintf("w%03d", n), 5)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *fakes) {
				c.put(w)
				w.onSend = hang(w, c.slow)
				defer w.start(dispatch.Config{Senders: 64})()
				after(30 * time.Second)
				for n := range 5 {
					w.put("zeta", 4, on(autopost.MAX))
					w.wake <- struct{}{}
					after(10 * time.Millisecond)
					require.Len(t, w.when("sent"), 4*(n+1), "at once, although other calls hang")
					after(time.Second)
				}
			})
		})
	}
}

func TestAStalledWorkspaceClaimsNothing(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakes) {
		w.put("acme", 1)
		w.onCommit = func(id string) (dispatch.Commit, error) {
			if time.Since(w.began) < time.Minute && strings.HasPrefix(id, "acme") {
				return dispatch.Commit{}, errGone
			}
			return dispatch.Commit{Applied: true}, nil
		}
		defer w.start(dispatch.Config{})()
		after(time.Second)
		w.put("acme", 10)
		w.put("zeta", 10)
		w.wake <- struct{}{}
		after(50 * time.Second)
		w.look(func() {
			require.Len(t, w.queue["acme"], 10)
			require.Empty(t, w.queue["zeta"], "other workspaces do not wait")
		})
		after(15 * time.Second)
		w.look(func() { require.Len(t, w.outcomes, 21, "soon after the database is back") })
	})
}

func TestNothingIsSentAfterTheMachineSleptThroughTheLease(t *testing.T) {
	t.Run("before the call", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *fakes) {
			w.put("acme", 1)
			w.onStart = func(string) (dispatch.Start, error) {
				w.slept.Store(int64(time.Hour))
				return dispatch.Start{Applied: true, Deadline: 5 * time.Minute}, nil
			}
			defer w.start(dispatch.Config{})()
			after(time.Minute)
			require.Empty(t, w.when("send acme-0"))
			require.Len(t, w.when("commit acme-0"), 1, "a definite failure if the claim is still current")
			require.Equal(t, "not_called", w.outcomes["acme-0"].Error.Code)
		})
	})
	t.Run("during the call", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *fakes) {
			w.put("acme", 1)
			var ended time.Duration
			w.onSend = func(ctx context.Context, c autopost.Call) autopost.Outcome {
				<-time.After(5 * time.Second)
				w.slept.Store(int64(time.Hour))
				o := untilCancelled(ctx, c)
				ended = time.Since(w.began)
				require.True(t, errors.Is(ctx.Err(), context.DeadlineExceeded))
				return o
			}
			defer w.start(dispatch.Config{})()
			after(time.Minute)
			require.LessOrEqual(t, ended, 6*time.Second)
		})
	})
}

// Many workspaces, platforms and rate groups are claimed, started and committed at once. A panic ends only its work.
func TestManyKeysAtOnceAndPanics(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakes) {
		const workspaces, posts = 30, 4
		for n := range workspaces {
			for post := range posts {
				w.put(fmt.Sprint("w", n), 1, func(d *autopost.Delivery) {
					d.RateGroup, d.AuthRef = fmt.Sprint("group", n%7), fmt.Sprint("bot", post)
					if post%2 == 1 {
						d.Platform = autopost.MAX
					}
				})
			}
		}
		w.put("startless", 1)
		w.put("claimless", 1)
		var once sync.Once
		claimed := make(chan struct{}, 1)
		w.onClaim = func(workspace string) error {
			if workspace == "claimless" && len(claimed) == 0 {
				claimed <- struct{}{}
				panic("the first claim")
			}
			return nil
		}
		w.onStart = func(id string) (dispatch.Start, error) {
			if strings.HasPrefix(id, "startless") {
				once.Do(func() { panic("the first start") })
			}
			return dispatch.Start{Applied: true, Deadline: 5 * time.Minute}, nil
		}
		polls := 0
		w.onReady = func() error {
			if polls++; polls == 2 {
				panic("the second poll")
			}
			return nil
		}
		stop := w.start(dispatch.Config{})
		after(time.Minute)
		stop()
		require.Len(t, w.outcomes, workspaces*posts+2)
		require.Equal(t, int64(3), w.panics.Load())
	})
}
