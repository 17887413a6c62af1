package dispatch_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/dispatch"
	"autopost/internal/outbound"
)

// rawFake records the payloads that it is given.
type rawFake struct {
	mu   sync.Mutex
	kept map[string]string
}

func (r *rawFake) Keep(workspace, ref string, show func() json.RawMessage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept[workspace+" "+ref] = string(show())
}

// The whole answer to a failed call is kept under the name that the commit gave it, and nothing else is.
func TestAnswerToAFailedCallIsKept(t *testing.T) {
	answered := func(ctx context.Context) {
		outbound.KeepAnswer(ctx, func() json.RawMessage { return json.RawMessage(`{"status":400}`) })
	}
	failed := autopost.Failed(autopost.Error{Category: autopost.Permanent, Code: "bad", Known: true})
	for name, c := range map[string]struct {
		send  func(ctx context.Context) autopost.Outcome
		named string
		want  map[string]string
	}{
		"a refusal": {func(ctx context.Context) autopost.Outcome { answered(ctx); return failed }, "raw/1", map[string]string{"acme raw/1": `{"status":400}`}},
		"an unknown outcome": {func(ctx context.Context) autopost.Outcome {
			answered(ctx)
			return autopost.Failed(autopost.Error{Category: autopost.Transient, Code: autopost.CodeUnknownOutcome})
		}, "raw/1", map[string]string{"acme raw/1": `{"status":400}`}},
		"off":       {func(ctx context.Context) autopost.Outcome { answered(ctx); return failed }, "", map[string]string{}},
		"no answer": {func(context.Context) autopost.Outcome { return failed }, "", map[string]string{}},
		"a request without an answer after one with": {func(ctx context.Context) autopost.Outcome {
			answered(ctx)
			outbound.KeepAnswer(ctx, nil)
			return failed
		}, "", map[string]string{}},
		"a success": {func(ctx context.Context) autopost.Outcome {
			answered(ctx)
			return autopost.Sent("77", time.Time{}, nil)
		}, "", map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *fakes) {
				w.raw = &rawFake{kept: map[string]string{}}
				w.put("acme", 1)
				w.onSend = func(ctx context.Context, _ autopost.Call) autopost.Outcome { return c.send(ctx) }
				w.onCommit = func(string) (dispatch.Commit, error) {
					return dispatch.Commit{Applied: true, Status: "failed_permanent", PayloadRef: c.named}, nil
				}
				stop := w.start(dispatch.Config{})
				synctest.Wait()
				stop()
				require.Equal(t, c.want, w.raw.kept)
				require.Equal(t, name == "a refusal" || name == "an unknown outcome" || name == "off", w.hasRaw["acme-0"])
			})
		})
	}
}
