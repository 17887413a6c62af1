package dispatch_test

import (
	"context"
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

func ms(n ...int) (all []time.Duration) {
	for _, n := range n {
		all = append(all, time.Duration(n)*time.Millisecond)
	}
	return all
}

// slowClaim makes the claims of a workspace take so long. Until their end its deliveries are due.
func (w *fakes) slowClaim(workspace string, took time.Duration) {
	w.onClaim = func(claimed string) error {
		if claimed == workspace {
			<-time.After(took)
		}
		return nil
	}
}

func TestAClaimKeyWithARunningClaimIsNotPolledFor(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakes) {
		w.put("acme", 1)
		w.slowClaim("acme", 4*time.Second)
		defer w.start(dispatch.Config{})()
		after(3900 * time.Millisecond)
		require.Equal(t, ms(0, 20), w.when("ready"), "the second one finds out when other keys are due")
		after(100 * time.Millisecond)
		require.Equal(t, ms(0, 20, 4000), w.when("ready"), "the key may have more due deliveries")
	})
}

// A claim is running, but another key is due later.
func TestARunningClaimDelaysNoLaterKey(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakes) {
		w.put("acme", 1)
		w.slowClaim("acme", 4*time.Second)
		due := w.began.Add(2 * time.Second)
		w.onNext = func() time.Duration {
			if time.Now().Before(due) {
				return time.Until(due)
			}
			return time.Hour
		}
		var put sync.Once
		w.onReady = func() error {
			if !time.Now().Before(due) {
				put.Do(func() { w.put("zeta", 1) })
			}
			return nil
		}
		defer w.start(dispatch.Config{})()
		after(3 * time.Second)
		require.Equal(t, ms(2000), w.when("send zeta-0"))
		require.Less(t, len(w.when("ready")), 10)
	})
}

func TestAWakeUpDuringAClaimLeadsToAPollAfterIt(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakes) {
		w.put("acme", 1)
		w.onClaim = func(string) error {
			if len(w.when("claim")) == 1 {
				<-time.After(time.Second)
				return fmt.Errorf("%w: it gave nothing", worker.ErrRefused)
			}
			return nil
		}
		defer w.start(dispatch.Config{})()
		after(500 * time.Millisecond)
		w.wake <- struct{}{}
		after(400 * time.Millisecond)
		require.Equal(t, ms(0, 20, 500, 520), w.when("ready"))
		after(100 * time.Millisecond)
		require.Equal(t, ms(0, 1000), w.when("claim"), "at once after the first one")
	})
}

// Twenty deliveries end, one after another, while a claim of their key is running.
func TestCommitsDuringAClaimOfTheirKeyWaitForItsEnd(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakes) {
		w.put("acme", 20)
		w.onSend = func(_ context.Context, c autopost.Call) autopost.Outcome {
			var n int
			_, err := fmt.Sscanf(c.Delivery.DeliveryID, "acme-%d", &n)
			require.NoError(t, err)
			<-time.After(time.Duration(30+20*n) * time.Millisecond)
			return autopost.Sent("77", time.Time{}, nil)
		}
		defer w.start(dispatch.Config{})()
		synctest.Wait()
		w.slowClaim("acme", 500*time.Millisecond)
		w.put("acme", 1)
		w.wake <- struct{}{}
		after(499 * time.Millisecond)
		w.look(func() { require.Len(t, w.outcomes, 20) })
		require.Equal(t, ms(0, 0, 0, 20), w.when("ready"), "for the first claim, after it, for the wake-up and for other keys")
		after(time.Millisecond)
		require.Len(t, w.when("ready"), 5, "the commits may have opened gates")
	})
}

// Another key than that of the running claim lacks capacity: two calls and the claim of acme and one call of yota use
// all four senders.
func TestCapacityForAnotherKeyIsPolledForDuringAClaim(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakes) {
		w.onSend = func(_ context.Context, c autopost.Call) autopost.Outcome {
			if c.Delivery.WorkspaceID != "zeta" {
				<-time.After(map[string]time.Duration{"acme": 100 * time.Millisecond, "yota": time.Minute}[c.Delivery.WorkspaceID])
			}
			return autopost.Sent("77", time.Time{}, nil)
		}
		w.put("acme", 2, on(autopost.MAX))
		defer w.start(dispatch.Config{Senders: 4, LimitPerWorkspace: 2})()
		synctest.Wait()
		w.slowClaim("acme", 10*time.Second)
		for _, workspace := range []string{"acme", "yota", "zeta"} {
			w.put(workspace, 1, func(d *autopost.Delivery) {
				if workspace == "acme" {
					d.Platform, d.RateGroup = autopost.MAX, "other"
				}
			})
			w.wake <- struct{}{}
			synctest.Wait()
		}
		after(time.Second)
		require.Len(t, w.when("send yota-0"), 1)
		require.Equal(t, ms(100), w.when("send zeta-0"))
	})
}

// Eight workspaces of one platform have slow claims; it may use three at once.
func TestKeysThatWaitForOtherClaimsArePolledForAtTheirEnds(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakes) {
		for n := range 8 {
			w.put(fmt.Sprint("acme", n), 1)
		}
		w.onClaim = func(string) error {
			<-time.After(time.Second)
			return nil
		}
		defer w.start(dispatch.Config{})()
		after(2900 * time.Millisecond)
		require.Equal(t, append(ms(0, 0, 0), ms(1000, 1000, 1000)...), w.when("claim")[:6])
		require.Less(t, len(w.when("ready")), 20, "one for each end of a claim and each commit")
	})
}
