package dispatch_test

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/dispatch"
	"autopost/internal/outbound"
)

// changeFakes adds due post changes and a platform that applies them.
type changeFakes struct {
	*fakes
	acts        []autopost.PostChange
	committed   map[string]*autopost.Error
	onClaimActs func() error
	onStart     func() (dispatch.Start, error)
	onAct       func(ctx context.Context, c autopost.Call) *autopost.Error
}

func newChangeFakes(t *testing.T, kinds ...autopost.ChangeKind) *changeFakes {
	a := &changeFakes{fakes: newFakes(t), committed: map[string]*autopost.Error{}}
	for _, kind := range kinds {
		a.acts = append(a.acts, autopost.PostChange{ActID: string(kind), Kind: kind, Delivery: autopost.Delivery{
			WorkspaceID: "w", DeliveryID: "d", Platform: autopost.Telegram, AuthRef: "bot", ClaimToken: "token",
		}})
	}
	return a
}

func (a *changeFakes) ReadyActWorkspaces(context.Context, int) ([]string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.acts) == 0 {
		return nil, nil
	}
	return []string{"w"}, nil
}

func (a *changeFakes) ClaimActs(context.Context, string, string, int) ([]autopost.PostChange, error) {
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

func (a *changeFakes) StartAct(context.Context, string, string, string) (dispatch.Start, error) {
	a.note("start act")
	if a.onStart != nil {
		return a.onStart()
	}
	return dispatch.Start{Applied: true, Deadline: time.Minute}, nil
}

func (a *changeFakes) CommitAct(_ context.Context, _, id, _ string, failure *autopost.Error, _ bool) (dispatch.Commit, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.committed[id] = failure
	return dispatch.Commit{Applied: true, Status: "done"}, nil
}

func (a *changeFakes) Edit(ctx context.Context, c autopost.Call) *autopost.Error {
	a.note("edit")
	if a.onAct != nil {
		return a.onAct(ctx, c)
	}
	return nil
}

func (a *changeFakes) Delete(context.Context, autopost.Call) *autopost.Error {
	a.note("delete")
	return nil
}

func (a *changeFakes) failure(id string) (*autopost.Error, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	failure, ok := a.committed[id]
	return failure, ok
}

func TestPostChangesAreAppliedAndCommitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newChangeFakes(t, autopost.ChangeEdit, autopost.ChangeDelete, autopost.ChangePin)
		a.adapter, a.store = a, a
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
		require.NotNil(t, failure, "the adapter cannot pin")
		require.Equal(t, "act_not_supported", failure.Code)
	})
}

func TestALostClaimOfPostChangesIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newChangeFakes(t, autopost.ChangeEdit)
		a.adapter, a.store = a, a
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

// A claim of deliveries is lost while a claim of post changes is running, or its changes are in flight.
func TestPostChangesInFlightAreNotReleasedAsLost(t *testing.T) {
	for name, slow := range map[string]func(a *changeFakes){
		"a running claim": func(a *changeFakes) {
			a.onClaimActs = func() error { <-time.After(3 * time.Second); return nil }
		},
		"changes in flight": func(*changeFakes) {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newChangeFakes(t, autopost.ChangeEdit)
				a.adapter, a.store = a, a
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
						require.Empty(t, known, "finished changes are not in flight")
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

func TestAPostChangeWaitsForItsSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newChangeFakes(t, autopost.ChangeEdit)
		a.adapter, a.store = a, a
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

// A slow machine misses each slot. The claim must not wait for the end of its lease.
func TestAPostChangeThatMissesItsSlotsIsMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newChangeFakes(t, autopost.ChangeEdit)
		a.adapter, a.store = a, a
		a.onStart = func() (dispatch.Start, error) {
			<-time.After(time.Second)
			return dispatch.Start{Applied: true, Limited: true, Deadline: time.Minute}, nil
		}
		stop := a.start(dispatch.Config{})
		after(5 * time.Second)
		stop()
		require.Len(t, a.when("start act"), 3)
		require.Equal(t, []time.Duration{3 * time.Second}, a.when("edit"))
		failure, committed := a.failure("edit")
		require.True(t, committed)
		require.Nil(t, failure)
	})
}

// The first slot of a post change may be two horizons ahead.
func TestAPostChangeAwaitsADistantSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newChangeFakes(t, autopost.ChangeEdit)
		a.adapter, a.store = a, a
		a.onStart = func() (dispatch.Start, error) {
			return dispatch.Start{Applied: true, Limited: true, SendIn: 1900 * time.Millisecond, Deadline: time.Minute}, nil
		}
		stop := a.start(dispatch.Config{})
		after(5 * time.Second)
		stop()
		require.Equal(t, []time.Duration{1900 * time.Millisecond}, a.when("edit"))
	})
}

func TestARefusedPostChangeIsNotCommitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newChangeFakes(t, autopost.ChangeEdit)
		a.adapter, a.store = a, a
		a.onStart = func() (dispatch.Start, error) { return dispatch.Start{Reason: "waits"}, nil }
		stop := a.start(dispatch.Config{})
		after(time.Second)
		stop()
		require.Empty(t, a.when("edit"))
		_, committed := a.failure("edit")
		require.False(t, committed)
	})
}

func TestAnUnansweredStartOfAPostChangeIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newChangeFakes(t, autopost.ChangeEdit)
		a.adapter, a.store = a, a
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

func TestAStopFinishesStartedPostChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newChangeFakes(t, autopost.ChangeEdit)
		a.adapter, a.store = a, a
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

func TestAPostChangeIsRepeatedOnceWithARenewedCredential(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newChangeFakes(t, autopost.ChangeEdit)
		a.adapter, a.store = a, a
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

func TestAPanicOverAPostChangeIsAnUnknownOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newChangeFakes(t, autopost.ChangeEdit)
		a.adapter, a.store = a, a
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

func TestNoPostChangeIsSentAfterTheMachineSleptThroughTheLease(t *testing.T) {
	asleep := func(t *testing.T, a *changeFakes) {
		a.adapter, a.store = a, a
		defer a.start(dispatch.Config{})()
		after(time.Minute)
	}
	t.Run("before the act", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			a := newChangeFakes(t, autopost.ChangeEdit)
			a.onStart = func() (dispatch.Start, error) {
				a.slept.Store(int64(time.Hour))
				return dispatch.Start{Applied: true, Deadline: 5 * time.Minute}, nil
			}
			asleep(t, a)
			require.Empty(t, a.when("edit"))
			failure, _ := a.failure("edit")
			require.Equal(t, "not_called", failure.Code, "a definite failure if the claim is still current")
		})
	})
	t.Run("between its requests", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			a := newChangeFakes(t, autopost.ChangeEdit)
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
			a := newChangeFakes(t, autopost.ChangeEdit)
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
			a := newChangeFakes(t, autopost.ChangeEdit)
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

// request sends to a port without a listener: a request that is sent is refused.
func request(ctx context.Context, t *testing.T) error {
	client, err := outbound.Operator(outbound.OperatorConfig{})
	require.NoError(t, err)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1:1/", nil)
	require.NoError(t, err)
	_, err = client.Do(req)
	return err
}

// manyChanges has one change of each of many workspaces.
type manyChanges struct {
	*changeFakes

	due map[string]autopost.PostChange
}

func (m *manyChanges) ReadyActWorkspaces(context.Context, int) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Keys(m.due)), nil
}

func (m *manyChanges) ClaimActs(_ context.Context, workspace, _ string, _ int) ([]autopost.PostChange, error) {
	if workspace == "odd" {
		panic(workspace)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	change, due := m.due[workspace]
	if !due {
		return nil, nil
	}
	delete(m.due, workspace)
	return []autopost.PostChange{change}, nil
}

func TestChangesOfManyWorkspacesAtOnceAndAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &manyChanges{newChangeFakes(t), map[string]autopost.PostChange{"odd": {}}}
		for n := range 60 {
			id := strconv.Itoa(n)
			m.due[id] = autopost.PostChange{ActID: id, Kind: autopost.ChangeEdit, Delivery: autopost.Delivery{
				WorkspaceID: id, DeliveryID: "d" + id, Platform: autopost.Telegram, AuthRef: "bot" + id, ClaimToken: "token" + id,
			}}
		}
		m.adapter, m.store = m, m
		stop := m.start(dispatch.Config{})
		after(time.Second)
		stop()
		require.Len(t, m.committed, 60)
		require.Positive(t, m.panics.Load())
	})
}
