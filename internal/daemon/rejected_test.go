package daemon

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/ingest/push"
	"autopost/internal/rawpayload"
)

// pushes answers every push with results.
type pushes struct {
	push.Store

	results string
}

func (p pushes) ReceivePush(context.Context, string, string, json.RawMessage) (json.RawMessage, error) {
	return json.RawMessage(p.results), nil
}

// rawStore records the runs whose rejected posts are named.
type rawStore struct {
	rawpayload.Store

	named chan string
}

func (s rawStore) NameRejected(_ context.Context, workspace, run string) (bool, string, error) {
	s.named <- workspace + " " + run
	return true, "", nil
}

func TestRejectedPostsOfAPushAreNamedAfterItsCommit(t *testing.T) {
	t.Parallel()
	for results, want := range map[string][]string{
		`{"run_id": "r1", "results": [{"status": "enqueued"}, {"status": "rejected"}]}`: {"w r1"},
		`{"run_id": "r2", "results": [{"status": "enqueued"}, {"status": "accepted"}]}`: nil,
		`{"run_id": "r3", "results": [{"status": "enqueued", "note": "rejected"}]}`:     nil,
	} {
		store := rawStore{named: make(chan string, 1)}
		keeper := rawpayload.New(rawpayload.Config{Store: store, Log: slog.New(slog.DiscardHandler)})
		answer, err := rejectedPushes{pushes{results: results}, keeper}.ReceivePush(t.Context(), "w", "in", json.RawMessage(`[{"text": "a"}, {"text": 1}]`))
		require.NoError(t, err)
		require.JSONEq(t, results, string(answer))
		keeper.Wait(t.Context())
		close(store.named)
		var named []string
		for run := range store.named {
			named = append(named, run)
		}
		require.Equal(t, want, named)
	}
}
