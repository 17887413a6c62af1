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

var (
	unauthorized = autopost.Error{Category: autopost.Permanent, Scope: autopost.ScopeChannel, Code: "x_unauthorized", Known: true, Message: "no"}
	revoked      = autopost.Error{Category: autopost.Permanent, Scope: autopost.ScopeChannel, Code: "x_token_revoked", Known: true, Message: "revoked"}
	away         = autopost.Error{Category: autopost.Transient, Scope: autopost.ScopePlatform, Code: autopost.CodeCredentialUnavailable, Known: true, Message: "later"}
)

func TestARefusedCredentialIsRenewedOnceInTheSameAttempt(t *testing.T) {
	fresh := func(autopost.Secret) (autopost.Secret, error) { return autopost.NewSecret("fresh"), nil }
	unknown := unauthorized
	unknown.Known = false
	other := unauthorized
	other.Scope = autopost.ScopeDelivery
	later := unauthorized
	later.Category = autopost.Transient
	for name, c := range map[string]struct {
		first  autopost.Error
		renew  func(autopost.Secret) (autopost.Secret, error)
		asked  int
		sends  int
		ok     bool
		failed autopost.Error
	}{
		"a new secret is used":                {first: unauthorized, renew: fresh, asked: 1, sends: 2, ok: true},
		"no other secret":                     {first: unauthorized, asked: 1, sends: 1, failed: unauthorized},
		"renewal refused":                     {first: unauthorized, renew: refuse(revoked), asked: 1, sends: 1, failed: revoked},
		"renewal put off":                     {first: unauthorized, renew: refuse(away), asked: 1, sends: 1, failed: away},
		"an unknown outcome is never renewed": {first: unknown, renew: fresh, sends: 1, failed: unknown},
		"nor a failure of the delivery":       {first: other, renew: fresh, sends: 1, failed: other},
		"nor one that passes":                 {first: later, renew: fresh, sends: 1, failed: later},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *fakes) {
				w.put("acme", 1)
				w.onRenew = c.renew
				w.onSend = func(_ context.Context, call autopost.Call) autopost.Outcome {
					if call.Secret.Reveal() == "fresh" {
						return autopost.Sent("77", time.Time{}, nil)
					}
					return autopost.Failed(c.first)
				}
				stop := w.start(dispatch.Config{})
				synctest.Wait()
				stop()
				require.Len(t, w.when("send acme-0"), c.sends)
				require.Len(t, w.when("renew "+c.first.Code), c.asked)
				require.Len(t, w.when("start acme-0"), 1, "it stays one attempt")
				o, _ := w.outcome("acme-0")
				require.Equal(t, c.ok, o.OK)
				if !c.ok {
					require.Equal(t, c.failed, *o.Error)
				}
			})
		})
	}
}

func refuse(e autopost.Error) func(autopost.Secret) (autopost.Secret, error) {
	return func(autopost.Secret) (autopost.Secret, error) {
		return autopost.Secret{}, &autopost.RenewalError{Failure: e}
	}
}

// There is no second renewal without an accepted part.
func TestARenewedCredentialThatIsRefusedEndsTheAttempt(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakes) {
		w.put("acme", 1)
		w.onRenew = func(autopost.Secret) (autopost.Secret, error) { return autopost.NewSecret("fresh"), nil }
		w.onSend = func(context.Context, autopost.Call) autopost.Outcome { return autopost.Failed(unauthorized) }
		stop := w.start(dispatch.Config{})
		synctest.Wait()
		stop()
		require.Len(t, w.when("send acme-0"), 2)
		require.Len(t, w.when("renew x_unauthorized"), 1)
		o, _ := w.outcome("acme-0")
		require.Equal(t, unauthorized, *o.Error)
	})
}

// A long upload may outlive several tokens.
func TestACredentialIsRenewedAgainAfterAnAcceptedPart(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakes) {
		w.put("acme", 1)
		w.onRenew = func(used autopost.Secret) (autopost.Secret, error) {
			return autopost.NewSecret(used.Reveal() + "+"), nil
		}
		sends := 0
		w.onSend = func(ctx context.Context, call autopost.Call) autopost.Outcome {
			if sends++; sends <= 3 {
				require.NoError(t, call.Renew(ctx))
			}
			return autopost.Failed(unauthorized)
		}
		stop := w.start(dispatch.Config{})
		synctest.Wait()
		stop()
		require.Equal(t, 4, sends, "the last secret was refused at once")
		require.Len(t, w.when("renew x_unauthorized"), 3)
		require.Len(t, w.when("start acme-0"), 1)
	})
}

func TestARenewalRepeatsNoAcknowledgedStep(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakes) {
		w.put("acme", 1)
		w.onRenew = func(autopost.Secret) (autopost.Secret, error) { return autopost.NewSecret("fresh"), nil }
		var seen []autopost.SeriesProgress
		w.onSend = func(ctx context.Context, call autopost.Call) autopost.Outcome {
			seen = append(seen, call.Delivery.RenderMeta.Progress)
			if call.Secret.Reveal() == "fresh" {
				return autopost.Sent("1", time.Time{}, nil)
			}
			if err := call.Emit(ctx, autopost.Acknowledged{Step: "text", IDs: []string{"1"}, Items: []int{0}}); err != nil {
				return autopost.Failed(autopost.Error{Code: autopost.CodeUnknownOutcome})
			}
			return autopost.Failed(unauthorized)
		}
		stop := w.start(dispatch.Config{})
		synctest.Wait()
		stop()
		require.Len(t, seen, 2)
		require.False(t, seen[0].Done("text"))
		require.True(t, seen[1].Done("text"))
		require.Equal(t, []string{"1"}, seen[1].ProviderMessageIDs)
		require.Equal(t, []int{0}, seen[1].SentItems)
	})
}

func TestAFailedRenewalBeforeTheCallIsTheOutcome(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakes) {
		w.put("acme", 1)
		w.onSecret = func() (autopost.Secret, error) { return refuse(revoked)(autopost.Secret{}) }
		stop := w.start(dispatch.Config{})
		synctest.Wait()
		stop()
		require.Empty(t, w.when("start acme-0"))
		o, _ := w.outcome("acme-0")
		require.Equal(t, revoked, *o.Error)
	})
}
