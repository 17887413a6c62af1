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

// known lets the dispatcher learn the credential of a workspace by its first delivery.
func (w *fakes) known(workspace string) {
	w.startAtOnce = true
	w.put(workspace, 1)
	w.wake <- struct{}{}
	synctest.Wait()
}

func TestAClaimStartsCallsOfKnownAccounts(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakes) {
		defer w.start(dispatch.Config{})()
		w.known("acme")
		require.Len(t, w.when("start acme-0"), 1, "the first claim does not know the credential")
		w.put("acme", 2)
		w.put("acme", 1, func(d *autopost.Delivery) { d.AuthRef = "another" })
		w.wake <- struct{}{}
		after(time.Second)
		w.sentOnce("acme", 4)
		require.Len(t, w.when("claim starts acme-1"), 1)
		require.Len(t, w.when("claim starts acme-2"), 1)
		require.Empty(t, w.when("start acme-1"), "one start record")
		require.Len(t, w.when("start acme-3"), 1, "its credential is not known")
	})
}

func TestAnAccountWithoutSecretIsNotStarted(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakes) {
		defer w.start(dispatch.Config{})()
		w.known("acme")
		w.onSecret = func() (autopost.Secret, error) { return autopost.Secret{}, autopost.ErrNoCredential }
		w.put("acme", 1)
		w.wake <- struct{}{}
		after(time.Second)
		o, ok := w.outcome("acme-1")
		require.True(t, ok)
		require.Equal(t, "credential_missing", o.Error.Code)
		require.Empty(t, w.when("send acme-1"))
		w.put("acme", 1)
		w.wake <- struct{}{}
		after(time.Second)
		require.Empty(t, w.when("claim starts acme-2"))
	})
}

func TestAStopFinishesCallsThatTheClaimStarted(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakes) {
		stop := w.start(dispatch.Config{})
		w.known("acme")
		began := make(chan struct{})
		w.onSecret = func() (autopost.Secret, error) { // the stop comes between claim and call
			close(began)
			<-time.After(time.Second)
			return autopost.NewSecret("canary-secret"), nil
		}
		w.onSend = func(context.Context, autopost.Call) autopost.Outcome { return autopost.Sent("78", time.Time{}, nil) }
		w.put("acme", 1)
		w.wake <- struct{}{}
		<-began
		stop()
		o, ok := w.outcome("acme-1")
		require.True(t, ok, "its outcome would be unknown")
		require.True(t, o.OK)
		require.Empty(t, w.released)
	})
}

// The answer of a claim with started calls is lost: the dispatcher did not make them. It commits that, except for what it
// knows: the request may be late.
func TestLostStartsAreCommittedAsNotCalled(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakes) {
		w.lostStarts = []dispatch.Claim{{DeliveryID: "lost", ClaimToken: "token-lost"}, {DeliveryID: "acme-1", ClaimToken: "token-acme-1"}}
		defer w.start(dispatch.Config{})()
		w.known("acme")
		w.onSend = func(context.Context, autopost.Call) autopost.Outcome {
			<-time.After(10 * time.Second)
			return autopost.Sent("78", time.Time{}, nil)
		}
		w.put("acme", 1)
		w.wake <- struct{}{}
		after(time.Second)
		w.loseAnAnswer()
		w.put("acme", 1)
		w.wake <- struct{}{}
		after(5 * time.Second)
		o, ok := w.outcome("lost")
		require.True(t, ok)
		require.Equal(t, "not_called", o.Error.Code)
		require.True(t, o.Error.Known)
		require.Empty(t, w.when("commit acme-1"), "its call is running")
		after(10 * time.Second)
		o, _ = w.outcome("acme-1")
		require.True(t, o.OK)
	})
}

// A call was made, and the database did not record its outcome until the lease ended. It is not reported as not made.
func TestACallWithoutRecordedOutcomeIsNotReportedAsNotCalled(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakes) {
		defer w.start(dispatch.Config{Lease: 10 * time.Second, AdapterTimeout: 5 * time.Second})()
		down := true
		w.onCommit = func(string) (dispatch.Commit, error) {
			if down {
				return dispatch.Commit{}, errGone
			}
			return dispatch.Commit{Applied: true, Status: "sent"}, nil
		}
		w.put("acme", 1)
		w.wake <- struct{}{}
		after(20 * time.Second)
		w.sentOnce("acme", 1)
		down = false
		w.look(func() { w.lostStarts = []dispatch.Claim{{DeliveryID: "acme-0", ClaimToken: "token-acme-0"}} })
		w.loseAnAnswer()
		w.put("acme", 1)
		w.wake <- struct{}{}
		after(time.Minute)
		w.sentOnce("acme", 2)
		require.NotEmpty(t, w.when("find acme"))
		_, ok := w.outcome("acme-0")
		require.False(t, ok, "its lease ends with an unknown outcome")
	})
}
