package dispatch_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/dispatch"
)

// asker is a platform that supports reconciliation.
type asker struct {
	*fakes
	verdict func(ctx context.Context, c autopost.Call) autopost.Verdict
}

func (a asker) Reconcile(ctx context.Context, c autopost.Call) autopost.Verdict {
	a.note("ask " + c.Delivery.DeliveryID)
	return a.verdict(ctx, c)
}

func (asker) SettleTime() time.Duration { return time.Minute }

// unknownBefore is a delivery after an unknown outcome.
func unknownBefore(d *autopost.Delivery) { d.UnknownOutcomes, d.OnUnknown = 1, "reconcile" }

// asked runs one delivery through a dispatcher whose platform supports reconciliation.
func asked(t *testing.T, w *fakes, change func(*autopost.Delivery), verdict func(context.Context, autopost.Call) autopost.Verdict) autopost.Outcome {
	t.Helper()
	w.adapter = asker{w, verdict}
	w.put("acme", 1, change)
	defer w.start(dispatch.Config{})()
	after(45 * time.Second)
	o, ok := w.outcome("acme-0")
	require.True(t, ok)
	return o
}

func TestAPostThatThePlatformHasIsNotSentAgain(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakes) {
		o := asked(t, w, unknownBefore, func(context.Context, autopost.Call) autopost.Verdict {
			return autopost.Verdict{Found: true, ProviderMessageID: "55", Raw: json.RawMessage(`{"ids":["55"]}`)}
		})
		require.True(t, o.OK)
		require.Equal(t, "55", o.ProviderMessageID)
		require.JSONEq(t, `{"ids":["55"],"reconciled":true}`, string(o.Raw))
		require.Empty(t, w.when("send acme-0"))
		require.Contains(t, w.logs.String(), `"reconciled":"found"`)
	})
}

func TestAPostThatThePlatformDoesNotHaveIsSent(t *testing.T) {
	for name, verdict := range map[string]autopost.Verdict{
		"absent":  {Absent: true},
		"unknown": {Error: &autopost.Error{Code: "x_429", Message: "later", Category: autopost.Transient, Scope: autopost.ScopeChannel, Known: true}},
		"nothing": {},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *fakes) {
				w.onSend = func(ctx context.Context, _ autopost.Call) autopost.Outcome {
					end, ok := ctx.Deadline()
					require.True(t, ok)
					require.Equal(t, time.Minute, time.Until(end), "the time of a whole call")
					return autopost.Sent("77", time.Time{}, nil)
				}
				o := asked(t, w, unknownBefore, func(context.Context, autopost.Call) autopost.Verdict {
					<-time.After(40 * time.Second)
					return verdict
				})
				require.Equal(t, "77", o.ProviderMessageID)
			})
		})
	}
}

func TestThePlatformIsAskedOnlyAfterAnUnknownOutcome(t *testing.T) {
	for name, change := range map[string]func(*autopost.Delivery){
		"nothing is unknown": func(d *autopost.Delivery) { d.OnUnknown = "reconcile" },
		"resend":             func(d *autopost.Delivery) { d.UnknownOutcomes, d.OnUnknown = 1, "resend" },
		"hold":               func(d *autopost.Delivery) { d.UnknownOutcomes, d.OnUnknown = 1, "hold" },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *fakes) {
				o := asked(t, w, change, func(context.Context, autopost.Call) autopost.Verdict {
					return autopost.Verdict{Found: true, ProviderMessageID: "55"}
				})
				require.Equal(t, "77", o.ProviderMessageID)
				require.Empty(t, w.when("ask acme-0"))
				require.NotContains(t, w.logs.String(), "reconciled")
			})
		})
	}
}

func TestAFoundStepIsAcknowledgedAndTheRestIsSent(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakes) {
		thread := func(d *autopost.Delivery) {
			unknownBefore(d)
			d.RenderMeta = autopost.RenderMeta{
				Steps:    []autopost.Step{{Name: "one"}, {Name: "two"}, {Name: "three"}},
				Progress: autopost.SeriesProgress{Steps: map[string][]string{"one": {"1"}}},
			}
		}
		var seen autopost.SeriesProgress
		w.onSend = func(_ context.Context, c autopost.Call) autopost.Outcome {
			seen = c.Delivery.RenderMeta.Progress
			return autopost.Sent("1", time.Time{}, nil)
		}
		asked(t, w, thread, func(ctx context.Context, c autopost.Call) autopost.Verdict {
			require.NoError(t, c.Emit(ctx, autopost.Acknowledged{Step: "two", IDs: []string{"2"}}))
			return autopost.Verdict{}
		})
		require.Len(t, w.when("progress two"), 1)
		require.Equal(t, map[string][]string{"one": {"1"}, "two": {"2"}}, seen.Steps)
	})
}

func TestAFoundStepThatCannotBeRecordedEndsTheAttempt(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakes) {
		w.onProgress = func(autopost.Acknowledged) (dispatch.Progress, error) {
			return dispatch.Progress{Applied: false, Reason: "stale"}, nil
		}
		var ended error
		w.onSend = func(ctx context.Context, _ autopost.Call) autopost.Outcome {
			ended = ctx.Err()
			return autopost.Failed(autopost.Error{Code: "not_started", Known: true})
		}
		asked(t, w, unknownBefore, func(ctx context.Context, c autopost.Call) autopost.Verdict {
			require.Error(t, c.Emit(ctx, autopost.Acknowledged{Step: "two", IDs: []string{"2"}}))
			return autopost.Verdict{}
		})
		require.ErrorIs(t, ended, context.Canceled, "nothing more may be sent")
	})
}
