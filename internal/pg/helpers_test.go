package pg_test

import (
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/dispatch"
	"autopost/internal/pg"
	"autopost/internal/testing/wait"
)

func claimOne(t *testing.T, store *pg.Store) autopost.Delivery {
	t.Helper()
	claimed, err := store.ClaimAndStart(t.Context(), "w", "run", 1, nil, nil)
	require.NoError(t, err)
	require.Len(t, claimed, 1)
	return claimed[0].Delivery
}

func startOne(t *testing.T, store *pg.Store, d autopost.Delivery) {
	t.Helper()
	starts, err := store.StartCallBatch(t.Context(), "w", []dispatch.Claim{{DeliveryID: d.DeliveryID, ClaimToken: d.ClaimToken}})
	require.NoError(t, err)
	require.True(t, starts[0].Applied)
}

func commitOne(t *testing.T, store *pg.Store, d autopost.Delivery, outcome autopost.Outcome) dispatch.Commit {
	t.Helper()
	commits, err := store.CommitOutcomeBatch(t.Context(), "w", []dispatch.ClaimResult{{DeliveryID: d.DeliveryID, ClaimToken: d.ClaimToken, Outcome: outcome}})
	require.NoError(t, err)
	require.Len(t, commits, 1)
	return commits[0]
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

func waitFor(t *testing.T, wake <-chan struct{}) {
	t.Helper()
	if !wait.Closed(wake) {
		t.Fatal("no wake-up")
	}
}

// field returns one field of a JSON object, as JSON.
func field(t *testing.T, object json.RawMessage, name string) string {
	t.Helper()
	var fields map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(object, &fields))
	return string(fields[name])
}
