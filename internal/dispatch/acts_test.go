package dispatch_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/dispatch"
)

// afterlife is what there is to do to posts that were sent, and a platform that does it.
type afterlife struct {
	*world
	acts      []autopost.Act
	committed map[string]*autopost.Error
	onStart   func() (dispatch.Start, error)
	onAct     func(c autopost.Call) *autopost.Error
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
	defer a.mu.Unlock()
	acts := a.acts
	a.acts = nil
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

func (a *afterlife) Edit(_ context.Context, c autopost.Call) *autopost.Error {
	a.note("edit")
	if a.onAct != nil {
		return a.onAct(c)
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

func TestAnActInHandIsFinishedWhenTheDaemonStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAfterlife(t, autopost.ActEdit)
		a.adapter, a.afterwards = a, a
		a.onAct = func(autopost.Call) *autopost.Error {
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
		a.onAct = func(autopost.Call) *autopost.Error {
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
		a.onAct = func(c autopost.Call) *autopost.Error { panic(c.Secret.Reveal()) }
		stop := a.start(dispatch.Config{})
		after(time.Second)
		stop()
		failure, _ := a.failure("edit")
		require.False(t, failure.Known)
		require.NotContains(t, a.logs.String(), "canary")
	})
}
