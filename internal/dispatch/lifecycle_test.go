package dispatch_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/dispatch"
)

func untilCancelled(ctx context.Context, _ autopost.Call) autopost.Outcome {
	<-ctx.Done()
	return autopost.Failed(autopost.Error{
		Category: autopost.Transient, Scope: autopost.ScopeDelivery,
		Code: autopost.CodeUnknownOutcome, Message: ctx.Err().Error(),
	})
}

func TestACallEndsInsideItsLease(t *testing.T) {
	for name, c := range map[string]struct {
		lease, want time.Duration
	}{
		"by the adapter's timeout": {5 * time.Minute, 20 * time.Second},
		"by what the lease leaves": {18 * time.Second, 8 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *fakes) {
				w.put("acme", 1)
				w.onStart = func(string) (dispatch.Start, error) {
					return dispatch.Start{Applied: true, Deadline: c.lease}, nil
				}
				w.onSend = func(ctx context.Context, call autopost.Call) autopost.Outcome {
					at, ok := ctx.Deadline()
					require.True(t, ok)
					require.Equal(t, c.want, time.Until(at))
					return untilCancelled(ctx, call)
				}
				defer w.start(dispatch.Config{AdapterTimeout: 20 * time.Second})()
				after(time.Minute)
				require.Equal(t, []time.Duration{c.want}, w.when("commit acme-0"))
				o, _ := w.outcome("acme-0")
				require.Equal(t, context.DeadlineExceeded.Error(), o.Error.Message)
			})
		})
	}
}

func TestACommitIsRepeatedWhileTheDatabaseIsUnavailable(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakes) {
		w.put("acme", 1)
		w.onCommit = func(string) (dispatch.Commit, error) {
			if time.Since(w.began) < time.Minute {
				return dispatch.Commit{}, errGone
			}
			return dispatch.Commit{Applied: true}, nil
		}
		defer w.start(dispatch.Config{})()
		after(63 * time.Second)

		_, ok := w.outcome("acme-0")
		require.True(t, ok)
		require.Len(t, w.when("send acme-0"), 1)
		asked := w.when("commit acme-0")
		require.Equal(t, 100*time.Millisecond, asked[1]-asked[0])
		require.Equal(t, 2*time.Second, asked[len(asked)-1]-asked[len(asked)-2])
	})
}

func TestACommitIsGivenUpAfterTheLease(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakes) {
		w.put("acme", 1)
		w.onStart = func(string) (dispatch.Start, error) {
			return dispatch.Start{Applied: true, Deadline: 30 * time.Second}, nil
		}
		w.onCommit = func(string) (dispatch.Commit, error) { return dispatch.Commit{}, errGone }
		defer w.start(dispatch.Config{})()
		after(time.Minute)
		asked := w.when("commit acme-0")
		require.LessOrEqual(t, asked[len(asked)-1], 30*time.Second)
		require.Contains(t, w.logs.String(), errGone.Error())
	})
}

func TestAStaleCommitIsLoggedAndNotRepeated(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakes) {
		w.put("acme", 1)
		w.onCommit = func(string) (dispatch.Commit, error) { return dispatch.Commit{Reason: "stale"}, nil }
		defer w.start(dispatch.Config{})()
		after(time.Minute)
		require.Len(t, w.when("commit acme-0"), 1)
		require.Contains(t, w.logs.String(), `"refused":"stale"`)
	})
}

// series sends three steps of the given length and stops if Emit fails.
func series(length time.Duration) func(context.Context, autopost.Call) autopost.Outcome {
	return func(ctx context.Context, c autopost.Call) autopost.Outcome {
		for _, step := range []string{"text", "media-1", "media-2"} {
			select {
			case <-time.After(length):
			case <-ctx.Done():
				return untilCancelled(ctx, c)
			}
			if step == "media-2" {
				break
			}
			if err := c.Emit(ctx, autopost.Acknowledged{Step: step, IDs: []string{"1"}}); err != nil {
				return autopost.Failed(autopost.Error{Code: "stopped", Known: true, Message: err.Error()})
			}
		}
		return autopost.Sent("1", time.Time{}, nil)
	}
}

func TestSeries(t *testing.T) {
	t.Run("steps are recorded and wait for their slots", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *fakes) {
			w.put("acme", 1)
			w.onSend = series(0)
			w.onProgress = func(autopost.Acknowledged) (dispatch.Progress, error) {
				return dispatch.Progress{Applied: true, Limited: true, SendIn: time.Second}, nil
			}
			defer w.start(dispatch.Config{})()
			after(time.Minute)
			require.Equal(t, []time.Duration{time.Second}, w.when("progress media-1"))
			require.Equal(t, []time.Duration{2 * time.Second}, w.when("commit acme-0"))
			require.Empty(t, w.when("extend 300"))
		})
	})
	t.Run("each step has the time of a call and the lease is renewed past its half", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *fakes) {
			w.put("acme", 1)
			w.onStart = func(string) (dispatch.Start, error) {
				return dispatch.Start{Applied: true, Deadline: 100 * time.Second}, nil
			}
			w.onSend = series(55 * time.Second)
			defer w.start(dispatch.Config{Lease: 100 * time.Second})()
			after(4 * time.Minute)
			o, ok := w.outcome("acme-0")
			require.True(t, ok)
			require.True(t, o.OK, "three steps of 55 s are longer than one timeout, and than the lease")
			require.Len(t, w.when("extend 100"), 2)
		})
	})
	t.Run("progress is repeated while the database is unavailable", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *fakes) {
			w.put("acme", 1)
			w.onSend = series(0)
			w.onProgress = func(autopost.Acknowledged) (dispatch.Progress, error) {
				if time.Since(w.began) < 90*time.Second {
					return dispatch.Progress{}, errGone
				}
				return dispatch.Progress{Applied: true}, nil
			}
			defer w.start(dispatch.Config{})()
			after(2 * time.Minute)
			o, ok := w.outcome("acme-0")
			require.True(t, ok)
			require.True(t, o.OK)
		})
	})
}

func TestASeriesStopsWithItsClaim(t *testing.T) {
	for name, lose := range map[string]func(*fakes){
		"a lost claim stops the series": func(w *fakes) {
			w.onProgress = func(autopost.Acknowledged) (dispatch.Progress, error) {
				return dispatch.Progress{Reason: "stale"}, nil
			}
		},
		"a lease that cannot be renewed stops the series": func(w *fakes) {
			w.onStart = func(string) (dispatch.Start, error) {
				return dispatch.Start{Applied: true, Deadline: 100 * time.Second}, nil
			}
			w.onExtend = func(int) (bool, error) { return false, nil }
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *fakes) {
				w.put("acme", 1)
				w.onSend = series(0)
				lose(w)
				defer w.start(dispatch.Config{})()
				after(time.Minute)
				require.Empty(t, w.when("progress media-1"))
				o, _ := w.outcome("acme-0")
				require.Equal(t, "stopped", o.Error.Code)
			})
		})
	}
}

func TestALongStepExtendsItsCall(t *testing.T) {
	// upload takes so long, and renews its call every 40 s.
	upload := func(parts int) func(context.Context, autopost.Call) autopost.Outcome {
		return func(ctx context.Context, c autopost.Call) autopost.Outcome {
			for range parts {
				select {
				case <-time.After(40 * time.Second):
				case <-ctx.Done():
					return untilCancelled(ctx, c)
				}
				if err := c.Renew(ctx); err != nil {
					return autopost.Failed(autopost.Error{Code: "stopped", Known: true, Message: err.Error()})
				}
			}
			return autopost.Sent("1", time.Time{}, nil)
		}
	}
	for name, c := range map[string]struct {
		extended bool
		want     []time.Duration
	}{
		"the lease is renewed past its half":            {true, []time.Duration{160 * time.Second, 320 * time.Second}},
		"a lease that cannot be renewed stops the step": {false, []time.Duration{160 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *fakes) {
				w.put("acme", 1)
				w.onStart = func(string) (dispatch.Start, error) {
					return dispatch.Start{Applied: true, Deadline: 300 * time.Second}, nil
				}
				w.onExtend = func(int) (bool, error) { return c.extended, nil }
				w.onSend = upload(10)
				defer w.start(dispatch.Config{})()
				after(10 * time.Minute)
				require.Equal(t, c.want, w.when("extend 300"))
				o, ok := w.outcome("acme-0")
				require.True(t, ok)
				require.Equal(t, c.extended, o.OK)
			})
		})
	}
}

func TestAStopReleasesUnstartedClaims(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakes) {
		w.put("acme", 1)
		w.put("acme", 1, slotIn(900*time.Millisecond))
		w.put("zeta", 1, slotIn(900*time.Millisecond))
		w.onSend = func(context.Context, autopost.Call) autopost.Outcome {
			<-time.After(20 * time.Second)
			return autopost.Sent("77", time.Time{}, nil)
		}
		stop := w.start(dispatch.Config{})
		after(100 * time.Millisecond)
		w.put("acme", 1)
		stopped := time.Now()
		stop()

		require.Equal(t, map[string][]string{"acme": {"token-acme-1"}, "zeta": {"token-zeta-0"}}, w.released)
		require.Equal(t, 100*time.Millisecond, w.when("release")[0], "at once, not after the calls")
		o, ok := w.outcome("acme-0")
		require.True(t, ok)
		require.True(t, o.OK, "a started call gets its time")
		require.Equal(t, 20*time.Second-100*time.Millisecond, time.Since(stopped))
		require.Len(t, w.queue["acme"], 1, "nothing is claimed after a stop")
		require.Len(t, w.when("touch"), 2, "heartbeats continue while calls run")
		require.Equal(t, []time.Duration{20 * time.Second}, w.when("left"), "the end of the run is recorded")
	})
}

func TestTheDrainCancelsLongCalls(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakes) {
		w.put("acme", 1)
		w.onSend = untilCancelled
		stop := w.start(dispatch.Config{Drain: 3 * time.Second})
		synctest.Wait()
		stopped := time.Now()
		stop()
		require.Equal(t, 3*time.Second, time.Since(stopped))
		o, ok := w.outcome("acme-0")
		require.True(t, ok, "the unknown outcome is committed before the end")
		require.False(t, o.Error.Known)
	})
}

func TestAnUnavailableDatabaseDoesNotDelayAStop(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakes) {
		w.put("acme", 1)
		w.onCommit = func(string) (dispatch.Commit, error) { return dispatch.Commit{}, errGone }
		stop := w.start(dispatch.Config{Drain: 3 * time.Second})
		synctest.Wait()
		stopped := time.Now()
		stop()
		require.LessOrEqual(t, time.Since(stopped), 9*time.Second)
	})
}

// A replaced slot may be behind those of many other calls.
func TestAReplacedSlotIsAwaitedHoweverFar(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakes) {
		w.put("acme", 1)
		starts := 0
		w.onStart = func(string) (dispatch.Start, error) {
			start := dispatch.Start{Applied: true, Limited: true, Deadline: time.Minute, SendIn: 3 * time.Second}
			if starts++; starts == 1 {
				<-time.After(200 * time.Millisecond) // its slot is over when it is answered
				start.SendIn = 0
			}
			return start, nil
		}
		defer w.start(dispatch.Config{})()
		after(10 * time.Second)
		require.Equal(t, []time.Duration{3200 * time.Millisecond}, w.when("send acme-0"))
	})
}

// The clock of the database is put back by a day between a claim and its start.
func TestASlotADayAheadHoldsACallUntilItsLeaseEnds(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakes) {
		w.put("acme", 1)
		w.onStart = func(string) (dispatch.Start, error) {
			<-time.After(200 * time.Millisecond)
			start := dispatch.Start{Applied: true, Limited: true, Deadline: 24 * time.Hour}
			if len(w.when("start acme-0")) > 1 {
				start.SendIn = 24 * time.Hour
			}
			return start, nil
		}
		defer w.start(dispatch.Config{Lease: time.Minute, AdapterTimeout: 10 * time.Second})()
		after(2 * time.Minute)
		outcome, ok := w.outcome("acme-0")
		require.True(t, ok)
		require.NotNil(t, outcome.Error)
		require.True(t, outcome.Error.Known)
		require.Empty(t, w.when("send acme-0"))
	})
}

func TestALateStepGetsAnotherSlot(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakes) {
		w.put("acme", 1)
		recorded := 0
		w.onProgress = func(autopost.Acknowledged) (dispatch.Progress, error) {
			if recorded++; recorded == 1 {
				<-time.After(200 * time.Millisecond)
				return dispatch.Progress{Applied: true, Limited: true, SendIn: 50 * time.Millisecond}, nil
			}
			return dispatch.Progress{Applied: true, Limited: true, SendIn: 700 * time.Millisecond}, nil
		}
		w.onSend = func(ctx context.Context, c autopost.Call) autopost.Outcome {
			require.NoError(t, c.Emit(ctx, autopost.Acknowledged{Step: "text", IDs: []string{"76"}}))
			w.note("next step")
			return autopost.Sent("77", time.Time{}, nil)
		}
		defer w.start(dispatch.Config{})()
		after(10 * time.Second)
		require.Equal(t, []time.Duration{950 * time.Millisecond}, w.when("next step"))
	})
}

// Steps share the rate of their group with other senders. A late step gets another slot.
func TestStepsKeepTheRateOfTheirGroup(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakes) {
		const every = 400 * time.Millisecond // three starts lie within the horizon
		var mu sync.Mutex
		next, answers := w.began, 0
		// reserve returns the group's next slot; every fourth answer is slow.
		reserve := func() time.Duration {
			mu.Lock()
			slot := time.Now()
			if next.After(slot) {
				slot = next
			}
			next = slot.Add(every)
			in := time.Until(slot)
			answers++
			delayed := answers%4 == 0
			mu.Unlock()
			if delayed {
				<-time.After(500 * time.Millisecond)
			}
			return in
		}
		w.onStart = func(string) (dispatch.Start, error) {
			return dispatch.Start{Applied: true, Limited: true, SendIn: reserve(), Deadline: 5 * time.Minute}, nil
		}
		w.onProgress = func(autopost.Acknowledged) (dispatch.Progress, error) {
			return dispatch.Progress{Applied: true, Limited: true, SendIn: reserve()}, nil
		}
		w.onSend = func(ctx context.Context, c autopost.Call) autopost.Outcome {
			for _, step := range []string{"one", "two", "three"} {
				w.note("received")
				<-time.After(3 * every) // so long that a slot is free at once
				require.NoError(t, c.Emit(ctx, autopost.Acknowledged{Step: step, IDs: []string{"1"}}))
			}
			w.note("received")
			return autopost.Sent("77", time.Time{}, nil)
		}
		w.put("acme", 3)
		defer w.start(dispatch.Config{})()
		after(2 * time.Minute)
		at := w.when("received")
		require.Len(t, at, 12)
		for i := range at[1:] {
			require.GreaterOrEqual(t, at[i+1]-at[i], every-100*time.Millisecond, "call %d: %v", i+1, at)
		}
	})
}
