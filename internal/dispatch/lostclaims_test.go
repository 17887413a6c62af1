package dispatch_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/dispatch"
	"autopost/internal/worker"
)

// loseAnAnswer loses the answer of the next claim that is not empty.
func (w *fakes) loseAnAnswer() {
	var once sync.Once
	w.onAnswer = func(rows []autopost.Delivery) (err error) {
		if len(rows) > 0 {
			once.Do(func() { err = errGone })
		}
		return err
	}
}

// sentOnce checks that the first n deliveries of a workspace were sent once each.
func (w *fakes) sentOnce(workspace string, n int) {
	for i := range n {
		require.Len(w.t, w.when(fmt.Sprint("send ", workspace, "-", i)), 1, i)
	}
}

func TestALostClaimIsReleasedAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakes) {
		w.put("acme", 3)
		w.put("zeta", 1)
		w.loseAnAnswer()
		defer w.start(dispatch.Config{})()
		after(3 * time.Second)
		w.sentOnce("acme", 3)
		w.sentOnce("zeta", 1)
		require.Contains(t, w.logs.String(), `"msg":"dispatch.lost_claims_released"`)
		after(10 * time.Minute)
		w.sentOnce("acme", 3)
		require.Less(t, len(w.when("find acme"))+len(w.when("find zeta")), 7, "for a minute, with each heartbeat")
	})
}

// The server finishes a claim although its caller gave up.
func TestALostClaimThatCommitsLateIsReleased(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakes) {
		w.put("acme", 3)
		once := true
		w.onClaim = func(string) error {
			if !once {
				return nil
			}
			once = false
			rows := w.claimed("acme", 3, nil)
			w.look(func() {
				for _, d := range rows {
					delete(w.sending, d.ClaimToken)
				}
			})
			time.AfterFunc(50*time.Second, func() {
				w.look(func() {
					for _, d := range rows {
						w.sending[d.ClaimToken] = d
					}
				})
			})
			return errGone
		}
		defer w.start(dispatch.Config{})()
		after(70 * time.Second)
		w.sentOnce("acme", 3)
	})
}

func TestADeliveryInFlightIsNotReleasedAsLost(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakes) {
		w.put("acme", 2, slotIn(900*time.Millisecond))
		stop := w.start(dispatch.Config{})
		after(100 * time.Millisecond)
		w.look(func() { require.Len(t, w.sending, 2, "claimed, and waiting for their slots") })
		w.onFind = func(known []string) error {
			if len(w.when("find acme")) > 1 {
				require.Empty(t, known, "finished deliveries are not in flight")
			}
			return nil
		}
		w.loseAnAnswer()
		w.put("acme", 1)
		w.wake <- struct{}{}
		after(10 * time.Second)
		require.Len(t, w.when("find acme"), 1)
		w.look(func() { require.Equal(t, []string{"token-acme-2"}, w.found) })
		w.sentOnce("acme", 3)
		after(time.Minute)
		require.Greater(t, len(w.when("find acme")), 3)
		stop()
	})
}

// A workspace has two claims: one is lost, the other is committed and not answered yet.
func TestARunningClaimIsNotReleasedAsLost(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakes) {
		w.put("acme", 1)
		w.put("acme", 1, on(autopost.MAX))
		lose := true
		w.onAnswer = func(rows []autopost.Delivery) error {
			switch {
			case len(rows) > 0 && rows[0].DeliveryID == "acme-0":
				<-time.After(5 * time.Second)
			case len(rows) > 0 && lose:
				lose = false
				return errGone
			}
			return nil
		}
		// Each claim takes deliveries of one platform only.
		defer w.start(dispatch.Config{})()
		after(4 * time.Second)
		require.Empty(t, w.when("find acme"))
		after(6 * time.Second)
		require.Equal(t, []time.Duration{5 * time.Second}, w.when("find acme"), "as soon as no claim is running")
		w.look(func() { require.Equal(t, []string{"token-acme-1"}, w.found) })
		w.sentOnce("acme", 2)
	})
}

func TestTheReleaseOfLostClaimsIsRepeatedUntilItIsAnswered(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakes) {
		w.put("acme", 1)
		w.loseAnAnswer()
		w.onFind = func([]string) error {
			if time.Since(w.began) < time.Minute {
				return errGone
			}
			return nil
		}
		defer w.start(dispatch.Config{})()
		after(59 * time.Second)
		require.Empty(t, w.when("send acme-0"))
		after(5 * time.Second)
		w.sentOnce("acme", 1)
	})
}

func TestFailingClaimsAreSearchedForWithEachHeartbeat(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakes) {
		w.put("acme", 1)
		w.onClaim = func(string) error {
			if time.Since(w.began) < 2*time.Minute {
				return errGone
			}
			return nil
		}
		defer w.start(dispatch.Config{})()
		after(5 * time.Minute)
		require.Greater(t, len(w.when("claim")), 100)
		asked := w.when("find acme")
		for i := range asked[2:] {
			require.Equal(t, 15*time.Second, asked[i+2]-asked[i+1])
		}
		require.Greater(t, asked[len(asked)-1], 165*time.Second)
		require.Less(t, asked[len(asked)-1], 200*time.Second, "a minute after the last")
		w.sentOnce("acme", 1)
	})
}

// A refused claim has no effect.
func TestARefusedClaimIsNotSearchedFor(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakes) {
		w.put("acme", 1)
		w.onClaim = func(string) error { return errors.Join(worker.ErrRefused, errGone) }
		defer w.start(dispatch.Config{})()
		after(time.Minute)
		require.Empty(t, w.when("find acme"))
	})
}

func TestAStopDoesNotWaitForLostClaims(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakes) {
		w.put("acme", 1)
		w.loseAnAnswer()
		w.onFind = func([]string) error {
			<-time.After(time.Second)
			return errGone
		}
		stop := w.start(dispatch.Config{})
		synctest.Wait()
		stop()
		require.LessOrEqual(t, time.Since(w.began), 2*time.Second)
	})
}
