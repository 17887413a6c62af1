package dispatch_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/dispatch"
	"autopost/internal/outbound"
)

// afterlife is what there is to do to posts that were sent, and a platform that does it.
type afterlife struct {
	*world
	acts        []autopost.Act
	committed   map[string]*autopost.Error
	onClaimActs func() error
	onStart     func() (dispatch.Start, error)
	onAct       func(ctx context.Context, c autopost.Call) *autopost.Error
}

func newAfterlife(t *testing.T, kinds ...autopost.ActKind) *afterlife {
	a := &afterlife{world: newWorld(t), committed: map[string]*autopost.Error{}}
	for _, kind := range kinds {
		a.acts = append(a.acts, autopost.Act{ActID: string(kind), Kind: kind, Delivery: autopost.Delivery{
			WorkspaceID: "w", DeliveryID: "d", Platform: autopost.Telegram, AuthRef: "bot", ClaimToken: "token",
		}})
	}
	return a
}

func (a *afterlife) ReadyActWorkspaces(context.Context, int) ([]string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.acts) == 0 {
		return nil, nil
	}
	return []string{"w"}, nil
}

func (a *afterlife) ClaimActs(context.Context, string, string, int) ([]autopost.Act, error) {
	a.mu.Lock()
	acts := a.acts
	a.acts = nil
	a.mu.Unlock()
	if a.onClaimActs != nil && len(acts) > 0 {
		if err := a.onClaimActs(); err != nil {
			return nil, err
		}
	}
	return acts, nil
}

func (a *afterlife) StartAct(context.Context, string, string, string) (dispatch.Start, error) {
	a.note("start act")
	if a.onStart != nil {
		return a.onStart()
	}
	return dispatch.Start{Applied: true, Deadline: time.Minute}, nil
}

func (a *afterlife) CommitAct(_ context.Context, _, id, _ string, failure *autopost.Error) (dispatch.Commit, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.committed[id] = failure
	return dispatch.Commit{Applied: true, Status: "done"}, nil
}

func (a *afterlife) Edit(ctx context.Context, c autopost.Call) *autopost.Error {
	a.note("edit")
	if a.onAct != nil {
		return a.onAct(ctx, c)
	}
	return nil
}

func (a *afterlife) Delete(context.Context, autopost.Call) *autopost.Error {
	a.note("delete")
	return nil
}

func (a *afterlife) failure(id string) (*autopost.Error, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	failure, ok := a.committed[id]
	return failure, ok
}

func TestActsAreServedAndCommitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAfterlife(t, autopost.ActEdit, autopost.ActDelete, autopost.ActPin)
		a.adapter, a.afterwards = a, a
		stop := a.start(dispatch.Config{})
		after(time.Second)
		stop()
		require.Len(t, a.when("edit"), 1)
		require.Len(t, a.when("delete"), 1)
		for _, id := range []string{"edit", "delete"} {
			failure, ok := a.failure(id)
			require.True(t, ok)
			require.Nil(t, failure)
		}
		failure, _ := a.failure("pin")
		require.NotNil(t, failure, "the adapter has no pins")
		require.Equal(t, "act_not_supported", failure.Code)
	})
}

func TestAClaimOfActsWhoseAnswerWasLostIsHandedBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAfterlife(t, autopost.ActEdit)
		a.adapter, a.afterwards = a, a
		lost := a.acts
		a.onClaimActs = func() error {
			if len(a.when("find w")) == 0 {
				return errGone
			}
			return nil
		}
		a.onFind = func(known []string) error {
			if len(a.when("find w")) == 1 {
				require.Empty(t, known)
				a.look(func() { a.acts = lost })
			}
			return nil
		}
		stop := a.start(dispatch.Config{})
		after(10 * time.Second)
		stop()
		require.Len(t, a.when("edit"), 1)
		_, ok := a.failure("edit")
		require.True(t, ok)
	})
}

// A delivery is lost while a claim of acts is under way, or what it took is in hand.
func TestActsInHandAreNotTakenForLost(t *testing.T) {
	for name, slow := range map[string]func(a *afterlife){
		"a claim under way": func(a *afterlife) {
			a.onClaimActs = func() error { <-time.After(3 * time.Second); return nil }
		},
		"in hand": func(*afterlife) {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAfterlife(t, autopost.ActEdit)
				a.adapter, a.afterwards = a, a
				slow(a)
				a.onSecret = func() (autopost.Secret, error) {
					<-time.After(3 * time.Second)
					return autopost.NewSecret("canary-secret"), nil
				}
				a.loseAnAnswer()
				a.onFind = func(known []string) error {
					if len(a.when("find w")) == 1 {
						require.Equal(t, []string{"token"}, known)
					} else {
						require.Empty(t, known, "what has ended is in hand no more")
					}
					return nil
				}
				stop := a.start(dispatch.Config{})
				after(time.Second)
				a.put("w", 1)
				a.wake <- struct{}{}
				after(time.Minute)
				stop()
				require.Len(t, a.when("edit"), 1)
				a.sentOnce("w", 1)
			})
		})
	}
}

func TestAnActWaitsForItsSlotAndAsksAgainWhenLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAfterlife(t, autopost.ActEdit)
		a.adapter, a.afterwards = a, a
		starts := 0
		a.onStart = func() (dispatch.Start, error) {
			if starts++; starts == 1 {
				return dispatch.Start{Applied: true, Limited: true, SendIn: -time.Second, Deadline: time.Minute}, nil
			}
			return dispatch.Start{Applied: true, Limited: true, SendIn: 700 * time.Millisecond, Deadline: time.Minute}, nil
		}
		stop := a.start(dispatch.Config{})
		after(2 * time.Second)
		stop()
		require.Equal(t, []time.Duration{0, 0}, a.when("start act"))
		require.Equal(t, []time.Duration{700 * time.Millisecond}, a.when("edit"))
	})
}

func TestAnActThatMayNotBeginIsLeftToTheDatabase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAfterlife(t, autopost.ActEdit)
		a.adapter, a.afterwards = a, a
		a.onStart = func() (dispatch.Start, error) { return dispatch.Start{Reason: "waits"}, nil }
		stop := a.start(dispatch.Config{})
		after(time.Second)
		stop()
		require.Empty(t, a.when("edit"))
		_, committed := a.failure("edit")
		require.False(t, committed)
	})
}

func TestAStartOfAnActThatIsNotAnsweredIsAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAfterlife(t, autopost.ActEdit)
		a.adapter, a.afterwards = a, a
		starts := 0
		a.onStart = func() (dispatch.Start, error) {
			if starts++; starts < 3 {
				return dispatch.Start{}, errGone
			}
			return dispatch.Start{Applied: true, Deadline: time.Minute}, nil
		}
		stop := a.start(dispatch.Config{})
		after(time.Second)
		stop()
		require.Len(t, a.when("start act"), 3)
		require.Len(t, a.when("edit"), 1)
		failure, committed := a.failure("edit")
		require.True(t, committed)
		require.Nil(t, failure)
	})
}

func TestAnActInHandIsFinishedWhenTheDaemonStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAfterlife(t, autopost.ActEdit)
		a.adapter, a.afterwards = a, a
		a.onAct = func(context.Context, autopost.Call) *autopost.Error {
			<-time.After(5 * time.Second)
			return nil
		}
		stop := a.start(dispatch.Config{})
		after(time.Second)
		stop()
		failure, committed := a.failure("edit")
		require.True(t, committed)
		require.Nil(t, failure)
	})
}

func TestAnActIsMadeAgainWithARenewedCredentialOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAfterlife(t, autopost.ActEdit)
		a.adapter, a.afterwards = a, a
		a.onRenew = func(autopost.Secret) (autopost.Secret, error) { return autopost.NewSecret("another"), nil }
		a.onAct = func(context.Context, autopost.Call) *autopost.Error {
			return &autopost.Error{Category: autopost.Permanent, Scope: autopost.ScopeChannel, Code: "tg_unauthorized", Known: true, Message: "no"}
		}
		stop := a.start(dispatch.Config{})
		after(time.Second)
		stop()
		require.Len(t, a.when("edit"), 2)
		failure, _ := a.failure("edit")
		require.Equal(t, "tg_unauthorized", failure.Code)
	})
}

func TestAnAdapterThatPanicsOverAnActLeavesItUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAfterlife(t, autopost.ActEdit)
		a.adapter, a.afterwards = a, a
		a.onSecret = func() (autopost.Secret, error) { return autopost.NewSecret("canary-secret"), nil }
		a.onAct = func(_ context.Context, c autopost.Call) *autopost.Error { panic(c.Secret.Reveal()) }
		stop := a.start(dispatch.Config{})
		after(time.Second)
		stop()
		failure, _ := a.failure("edit")
		require.False(t, failure.Known)
		require.NotContains(t, a.logs.String(), "canary")
	})
}

func TestAnActBeginsNoCallAfterTheMachineSleptThroughItsLease(t *testing.T) {
	asleep := func(t *testing.T, a *afterlife) {
		a.adapter, a.afterwards = a, a
		defer a.start(dispatch.Config{})()
		after(time.Minute)
	}
	t.Run("before the act", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			a := newAfterlife(t, autopost.ActEdit)
			a.onStart = func() (dispatch.Start, error) {
				a.slept.Store(int64(time.Hour))
				return dispatch.Start{Applied: true, Deadline: 5 * time.Minute}, nil
			}
			asleep(t, a)
			require.Empty(t, a.when("edit"))
			failure, _ := a.failure("edit")
			require.Equal(t, "not_called", failure.Code, "a definite failure, if the claim is ours still")
		})
	})
	t.Run("between its requests", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			a := newAfterlife(t, autopost.ActEdit)
			a.onAct = func(ctx context.Context, _ autopost.Call) *autopost.Error {
				a.slept.Store(int64(time.Hour))
				require.ErrorIs(t, request(ctx, t), context.DeadlineExceeded)
				return nil
			}
			asleep(t, a)
			require.Len(t, a.when("edit"), 1)
		})
	})
	t.Run("in an act that hangs", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			a := newAfterlife(t, autopost.ActEdit)
			a.onAct = func(ctx context.Context, _ autopost.Call) *autopost.Error {
				<-time.After(5 * time.Second)
				a.slept.Store(int64(time.Hour))
				<-ctx.Done()
				a.note("given up")
				return &autopost.Error{Category: autopost.Transient, Scope: autopost.ScopeDelivery, Code: "timeout"}
			}
			asleep(t, a)
			require.Len(t, a.when("given up"), 1)
			require.LessOrEqual(t, a.when("given up")[0], 6*time.Second)
		})
	})
	t.Run("over a renewed credential", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			a := newAfterlife(t, autopost.ActEdit)
			a.onRenew = func(autopost.Secret) (autopost.Secret, error) {
				a.slept.Store(int64(time.Hour))
				return autopost.NewSecret("another"), nil
			}
			a.onAct = func(ctx context.Context, c autopost.Call) *autopost.Error {
				if c.Secret.Reveal() == "another" {
					require.ErrorIs(t, request(ctx, t), context.DeadlineExceeded)
				}
				return &autopost.Error{Category: autopost.Permanent, Scope: autopost.ScopeChannel, Code: "tg_unauthorized", Known: true, Message: "no"}
			}
			asleep(t, a)
			require.Len(t, a.when("edit"), 2)
		})
	})
}

// request makes one to where nobody listens: if it goes out, it is refused.
func request(ctx context.Context, t *testing.T) error {
	client, err := outbound.Operator(outbound.OperatorConfig{})
	require.NoError(t, err)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1:1/", nil)
	require.NoError(t, err)
	_, err = client.Do(req)
	return err
}
