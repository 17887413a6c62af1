package dispatch_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/dispatch"
)

// bubble runs a test on a fake clock with new fakes.
func bubble(t *testing.T, f func(t *testing.T, w *fakes)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, newFakes(t)) })
}

func TestAPostIsSentAndCommitted(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakes) {
		w.put("acme", 1)
		defer w.start(dispatch.Config{})()
		synctest.Wait()

		o, ok := w.outcome("acme-0")
		require.True(t, ok)
		require.Equal(t, "77", o.ProviderMessageID)
		require.Contains(t, w.logs.String(), `"msg":"delivery.attempted"`)
		require.NotContains(t, w.logs.String(), "canary-secret")
	})
}

func TestHeartbeatsStartBeforeTheFirstClaim(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakes) {
		w.put("acme", 1)
		w.onTouch = func() error {
			if len(w.when("touch")) < 3 {
				return errGone
			}
			return nil
		}
		stop := w.start(dispatch.Config{})
		after(time.Minute)
		stop()

		touches := w.when("touch")
		require.GreaterOrEqual(t, w.when("claim")[0], touches[2])
		require.Len(t, touches, 3+3, "after 15, 30 and 45 s from the first answer")
	})
}

func TestAWaitForASlotDelaysNoOtherDelivery(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakes) {
		w.put("acme", 1, slotIn(800*time.Millisecond))
		w.put("acme", 1)
		defer w.start(dispatch.Config{Senders: 4})()
		after(time.Second)

		require.Less(t, w.when("send acme-1")[0], 100*time.Millisecond)
		require.Equal(t, 795*time.Millisecond, w.when("start acme-0")[0])
	})
}

func TestFirstByteWaitsForTheConfirmedSlot(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakes) {
		w.put("acme", 1)
		w.onStart = func(string) (dispatch.Start, error) {
			return dispatch.Start{Applied: true, Limited: true, SendIn: 400 * time.Millisecond, Deadline: time.Minute}, nil
		}
		defer w.start(dispatch.Config{})()
		after(time.Second)
		require.Equal(t, 400*time.Millisecond, w.when("send acme-0")[0])
	})
}

// The answer to a start may arrive too late for its slot.
func TestAMissedSlotIsReplaced(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakes) {
		w.put("acme", 1)
		w.onStart = func(id string) (dispatch.Start, error) {
			if len(w.when("start "+id)) == 1 {
				after(150 * time.Millisecond)
				return dispatch.Start{Applied: true, Limited: true, Deadline: time.Minute}, nil
			}
			return dispatch.Start{Applied: true, Limited: true, SendIn: 300 * time.Millisecond, Deadline: time.Minute}, nil
		}
		defer w.start(dispatch.Config{})()
		after(time.Second)
		require.Len(t, w.when("start acme-0"), 2)
		require.Equal(t, []time.Duration{450 * time.Millisecond}, w.when("send acme-0"))
	})
}

func TestACallWithoutASlotIsNeverLate(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakes) {
		w.put("acme", 1)
		w.onStart = func(string) (dispatch.Start, error) {
			after(150 * time.Millisecond)
			return dispatch.Start{Applied: true, Deadline: time.Minute}, nil
		}
		defer w.start(dispatch.Config{})()
		after(time.Second)
		require.Len(t, w.when("start acme-0"), 1)
		require.Equal(t, []time.Duration{150 * time.Millisecond}, w.when("send acme-0"))
	})
}

func TestAWrongClockDelaysASlotByAtMostASecond(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakes) {
		w.put("acme", 1, slotIn(24*time.Hour))
		defer w.start(dispatch.Config{})()
		after(time.Second)
		require.Len(t, w.when("send acme-0"), 1)
	})
}

func TestARefusedStartMakesNoCallAndNoCommit(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakes) {
		w.put("acme", 1)
		w.onStart = func(string) (dispatch.Start, error) { return dispatch.Start{Reason: "paused"}, nil }
		stop := w.start(dispatch.Config{})
		after(time.Second)
		stop()
		require.Empty(t, w.when("send acme-0"))
		require.Empty(t, w.when("commit acme-0"))
		require.Empty(t, w.released)
	})
}

func TestAnUnansweredStartIsRepeated(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakes) {
		w.put("acme", 1)
		w.onStart = func(id string) (dispatch.Start, error) {
			if len(w.when("start "+id)) < 4 {
				return dispatch.Start{}, errGone
			}
			return dispatch.Start{Applied: true, Deadline: time.Minute}, nil
		}
		defer w.start(dispatch.Config{})()
		after(5 * time.Second)
		require.Len(t, w.when("start acme-0"), 4)
		require.Len(t, w.when("send acme-0"), 1)
	})
}

func TestAnUnansweredLookupOfACredentialIsRepeated(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakes) {
		asked := 0
		w.onSecret = func() (autopost.Secret, error) {
			if asked++; asked == 1 {
				return autopost.Secret{}, errGone
			}
			return autopost.NewSecret("canary-secret"), nil
		}
		w.put("acme", 1)
		defer w.start(dispatch.Config{})()
		after(time.Second)
		o, ok := w.outcome("acme-0")
		require.True(t, ok)
		require.True(t, o.OK, "a lost connection does not pause the rate group")
	})
}

func TestAStartWithoutAnAnswerIsCommittedAsNotCalled(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakes) {
		w.put("acme", 1)
		w.onStart = func(string) (dispatch.Start, error) { return dispatch.Start{}, errGone }
		defer w.start(dispatch.Config{})()
		after(5 * time.Minute)
		require.Empty(t, w.when("send acme-0"))
		o, ok := w.outcome("acme-0")
		require.True(t, ok)
		require.Equal(t, "not_called", o.Error.Code)
		require.True(t, o.Error.Known)
	})
}

func TestClaimsTakeOnlyWhatCanStartSoon(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakes) {
		w.put("acme", 40)
		w.put("zeta", 40)
		w.onSend = func(context.Context, autopost.Call) autopost.Outcome {
			<-time.After(time.Second)
			return autopost.Sent("77", time.Time{}, nil)
		}
		defer w.start(dispatch.Config{Senders: 8, LimitPerWorkspace: 5})()
		after(500 * time.Millisecond)
		w.look(func() {
			require.Equal(t, 6, w.running, "the capacity for two more stays free")
			require.Equal(t, 80-6, len(w.queue["acme"])+len(w.queue["zeta"]))
		})
		after(time.Minute)

		w.look(func() {
			require.Equal(t, 6, w.most)
			require.Len(t, w.outcomes, 80)
			for _, limit := range w.limits {
				require.LessOrEqual(t, limit, 5)
			}
		})
	})
}

func TestAFailingClaimDelaysNoOtherWorkspace(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakes) {
		w.put("acme", 1)
		w.onClaim = func(workspace string) error {
			if workspace == "acme" {
				return errGone
			}
			return nil
		}
		defer w.start(dispatch.Config{})()
		after(20 * time.Second)
		w.put("zeta", 1)
		w.wake <- struct{}{}
		synctest.Wait()
		require.Equal(t, []time.Duration{20 * time.Second}, w.when("send zeta-0"))
	})
}

func TestAnotherClaimFollowsAFullOneAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakes) {
		w.put("acme", 30)
		defer w.start(dispatch.Config{LimitPerWorkspace: 10})()
		after(100 * time.Millisecond)
		w.look(func() { require.Len(t, w.outcomes, 30) })
	})
}

func TestWakeUps(t *testing.T) {
	t.Run("by signal", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *fakes) {
			defer w.start(dispatch.Config{})()
			after(time.Second)
			w.put("acme", 1)
			w.wake <- struct{}{}
			synctest.Wait()
			require.Equal(t, []time.Duration{time.Second}, w.when("send acme-0"))
		})
	})
	t.Run("by the next due gate", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *fakes) {
			w.onNext = func() time.Duration { return 3*time.Second - time.Since(w.began) }
			defer w.start(dispatch.Config{})()
			after(time.Second)
			w.put("acme", 1)
			after(4 * time.Second)
			require.Equal(t, []time.Duration{3 * time.Second}, w.when("send acme-0"))
		})
	})
	t.Run("by the poll when the listener is dead", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *fakes) {
			close(w.wake)
			defer w.start(dispatch.Config{})()
			after(time.Second)
			w.put("acme", 1)
			after(5 * time.Second)
			require.Equal(t, []time.Duration{5 * time.Second}, w.when("send acme-0"))
		})
	})
	t.Run("a due gate that gives nothing does not spin", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *fakes) {
			w.put("acme", 1)
			w.onClaim = func(string) error { return errGone }
			defer w.start(dispatch.Config{})()
			after(10 * time.Second)
			require.Less(t, len(w.when("ready")), 20)
		})
	})
	t.Run("idle daemon asks less than once a second", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *fakes) {
			defer w.start(dispatch.Config{})()
			after(time.Minute)
			require.LessOrEqual(t, len(w.when("ready")), 13)
		})
	})
	t.Run("database that is gone is asked with growing pauses", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *fakes) {
			w.put("acme", 1)
			w.onReady = func() error {
				if time.Since(w.began) < time.Minute {
					return errGone
				}
				return nil
			}
			defer w.start(dispatch.Config{})()
			after(66 * time.Second)
			require.Less(t, len(w.when("ready")), 75)
			require.Len(t, w.when("send acme-0"), 1)
		})
	})
}

func TestAttemptsThatEndBeforeTheCall(t *testing.T) {
	for _, c := range []struct {
		name   string
		secret func() (autopost.Secret, error)
		change func(*autopost.Delivery)
		want   autopost.Error
	}{
		{
			name:   "unknown platform",
			change: func(d *autopost.Delivery) { d.Platform = "gopherpost" },
			want:   autopost.Error{Category: autopost.Permanent, Scope: autopost.ScopeChannel, Code: "no_adapter", Known: true},
		}, {
			name:   "credential not bound",
			secret: func() (autopost.Secret, error) { return autopost.Secret{}, autopost.ErrNoCredential },
			want:   autopost.Error{Category: autopost.Permanent, Scope: autopost.ScopeChannel, Code: "credential_missing", Known: true},
		}, {
			name:   "credential empty",
			secret: func() (autopost.Secret, error) { return autopost.Secret{}, nil },
			want:   autopost.Error{Category: autopost.Permanent, Scope: autopost.ScopeChannel, Code: "credential_missing", Known: true},
		}, {
			name:   "credential out of reach",
			secret: func() (autopost.Secret, error) { return autopost.Secret{}, errGone },
			want: autopost.Error{
				Category: autopost.Transient, Scope: autopost.ScopePlatform, Code: "credential_unavailable",
				Known: true, RetryAfterMS: 30_000,
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *fakes) {
				w.onSecret = c.secret
				w.put("acme", 1, func(d *autopost.Delivery) {
					if c.change != nil {
						c.change(d)
					}
				})
				stop := w.start(dispatch.Config{})
				synctest.Wait()
				stop()

				o, ok := w.outcome("acme-0")
				require.True(t, ok)
				require.NotEmpty(t, o.Error.Message)
				got := *o.Error
				got.Message = ""
				require.Equal(t, c.want, got)
				require.Empty(t, w.when("start acme-0"), "the call must have no start record")
			})
		})
	}
}

func TestAFaultyAdapterLeavesAnUnknownOutcome(t *testing.T) {
	for name, send := range map[string]func(context.Context, autopost.Call) autopost.Outcome{
		"panic": func(_ context.Context, c autopost.Call) autopost.Outcome {
			panic(errors.New("https://api.example/bot" + c.Secret.Reveal()))
		},
		"nothing said": func(context.Context, autopost.Call) autopost.Outcome { return autopost.Outcome{} },
		"no id":        func(context.Context, autopost.Call) autopost.Outcome { return autopost.Outcome{OK: true} },
		"both": func(context.Context, autopost.Call) autopost.Outcome {
			return autopost.Outcome{OK: true, ProviderMessageID: "1", Error: &autopost.Error{}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *fakes) {
				w.put("acme", 1)
				w.onSend = send
				stop := w.start(dispatch.Config{})
				synctest.Wait()
				stop()

				o, ok := w.outcome("acme-0")
				require.True(t, ok)
				require.Equal(t, autopost.CodeUnknownOutcome, o.Error.Code)
				require.False(t, o.Error.Known)
				require.NotContains(t, w.logs.String()+o.Error.Message, "canary-secret")
			})
		})
	}
}

func TestOutcomesAreMadeStorable(t *testing.T) {
	for name, c := range map[string]struct{ raw, want string }{
		"plain":          {`{"id":12345678901234567890}`, `{"id":12345678901234567890}`},
		"NUL":            {`{"a":"x\u0000y"}`, "{\"a\":\"x\uFFFDy\"}"},
		"half surrogate": {`"\ud800"`, "\"\uFFFD\""},
		"no JSON":        {"<html>\x00", "\"<html>\uFFFD\""},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *fakes) {
				w.put("acme", 1)
				w.onSend = func(context.Context, autopost.Call) autopost.Outcome {
					return autopost.Failed(autopost.Error{Code: "bad", Known: true, Message: "a\x00b\xff", Raw: []byte(c.raw)})
				}
				stop := w.start(dispatch.Config{})
				synctest.Wait()
				stop()

				o, ok := w.outcome("acme-0")
				require.True(t, ok)
				require.JSONEq(t, c.want, string(o.Error.Raw))
				require.Equal(t, "a\uFFFDb\uFFFD", o.Error.Message)
			})
		})
	}
}

func TestAWrongConfigIsRejected(t *testing.T) {
	for name, cfg := range map[string]dispatch.Config{
		"timeout longer than the lease": {Lease: time.Minute, AdapterTimeout: time.Minute},
		"negative senders":              {Senders: -1},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := dispatch.New(cfg, dispatch.Deps{})
			require.ErrorContains(t, err, "dispatch config")
		})
	}
}

// There is capacity for one delivery, and the first workspace has work for a long time.
func TestALongQueueDelaysNoOtherWorkspace(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakes) {
		w.put("acme", 20)
		w.put("bolt", 2)
		w.put("zeta", 1)
		w.onSend = func(context.Context, autopost.Call) autopost.Outcome {
			after(time.Second)
			return autopost.Outcome{OK: true, ProviderMessageID: "77"}
		}
		defer w.start(dispatch.Config{Senders: 1, LimitPerWorkspace: 10})()
		after(10 * time.Second)
		for round, id := range []string{"acme-0", "bolt-0", "zeta-0", "acme-1", "bolt-1", "acme-2", "acme-3"} {
			require.Len(t, w.when("send "+id), 1, id)
			require.InDelta(t, float64(round)*float64(time.Second), w.when("send " + id)[0], float64(100*time.Millisecond), id)
		}
	})
}
