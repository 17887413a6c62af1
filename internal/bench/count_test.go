package bench

import (
	"context"
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/adapter"
	"autopost/internal/dispatch"
)

func TestCountedFunctionsAreThoseOfADaemon(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("../pg/dispatch.go")
	require.NoError(t, err)
	for _, stage := range stages {
		require.Contains(t, string(source), "from autopost."+stage.function+"(", stage.name)
	}
}

func TestCommittedOutcomesAreThoseOfADaemon(t *testing.T) {
	t.Parallel()
	item := sentText(claimed{DeliveryID: "delivery", ClaimToken: "token"}, 7)
	call := autopost.Call{Delivery: autopost.Delivery{RenderMeta: autopost.RenderMeta{Steps: []autopost.Step{{Name: "text", Text: true}}}}}
	outcome := adapter.Run(t.Context(), call, func(context.Context, autopost.Step, string) (adapter.Receipt, *autopost.Error) {
		return adapter.Receipt{IDs: []string{"7"}, SentAt: *item.Outcome.SentAt}, nil
	})
	want, err := json.Marshal(dispatch.ClaimResult{DeliveryID: "delivery", ClaimToken: "token", Outcome: outcome})
	require.NoError(t, err)
	got, err := json.Marshal(item)
	require.NoError(t, err)
	require.JSONEq(t, string(want), string(got))
}
